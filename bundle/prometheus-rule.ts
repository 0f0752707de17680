import { parse, stringify } from 'yaml';
import { readProject } from '../src/base/paths.js';

/** The text of deploy/kubernetes/monitoring/rules.yaml: deploy/prometheus/alerts.yml as a resource of the Prometheus Operator. */
export function prometheusRule(): string {
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'gateway', labels: { app: 'gateway' } },
    spec: parse(readProject('deploy/prometheus/alerts.yml')) as object,
  };
  return `# Made from deploy/prometheus/alerts.yml by \`npm run docs\`; change it there.\n${stringify(rule, { lineWidth: 0 })}`;
}
