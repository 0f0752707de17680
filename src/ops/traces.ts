import { context, propagation, trace } from '@opentelemetry/api';
import { apiVersion } from '../http/render.js';
import { tracerName } from '../tracing.js';

/** How long an export may take, so that a collector that is away delays the end of the gateway by no more. */
const exportMsMax = 3000;

/**
 * Sends spans to an OTLP collector (HTTP) from now on; `endpoint` is its base URL. Returns the end of it, which sends the spans
 * that wait. The SDK is imported here only, because a gateway without tracing must not pay for it.
 */
export async function startTraces(endpoint: string): Promise<() => Promise<void>> {
  const [{ BatchSpanProcessor, NodeTracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportMsMax });
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': tracerName, 'service.version': apiVersion }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return async () => {
    await provider.shutdown().catch(() => undefined); // spans of a collector that is away are lost
    for (const api of [trace, context, propagation]) api.disable();
  };
}
