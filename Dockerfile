# The gateway as an image: `docker build -t workspace-data-gateway .`
# Stages: compile to a program in one file; copy it into an image without compiler, packages and npm cache.

# The newest Node 26 LTS, with its fixes. For a build that can be repeated give the digest of your registry: --build-arg NODE_IMAGE=node@sha256:…
ARG NODE_IMAGE=node:26-bookworm-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY config config
COPY src src
COPY bundle bundle
# The session of a login is that of the roles.
COPY sql/core sql/core
COPY sql/catalog sql/catalog
COPY sql/check sql/check
COPY sql/migrate sql/migrate
RUN npm run bundle

FROM ${NODE_IMAGE}
# The release workflow gives these; a build by hand leaves them empty.
ARG VERSION=
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="Workspace data gateway" \
  org.opencontainers.image.description="A JSON REST API over PostgreSQL read replicas, with guarded writes to the primary" \
  org.opencontainers.image.licenses="MIT" org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" org.opencontainers.image.source="$SOURCE"
ENV NODE_ENV=production MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072
WORKDIR /app
COPY --from=build /build/dist/bundle dist/bundle
COPY --from=build /build/config config
COPY package.json LICENSE ./
COPY sql/core sql/core
COPY sql/views sql/views
COPY sql/catalog sql/catalog
COPY sql/check sql/check
COPY sql/migrate sql/migrate
COPY sql/adopt sql/adopt
USER node
# The ops listener stays on the container's loopback unless OPS_HOST says otherwise; the health check asks it there.
# /livez, not /readyz: restarting the gateway does not bring a replica back.
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT || 9090}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
CMD ["node", "--max-semi-space-size=16", "--v8-pool-size=2", "--max-old-space-size=1024", "dist/bundle/gateway.cjs", "serve"]
