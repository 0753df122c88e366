export { EnvtestUnavailable, resolveAssets, startControlPlane } from "@konverge/infra-envtest";
export type { ControlPlane, StartControlPlaneOptions } from "@konverge/infra-envtest";
export { guard, obtainRedis, startRedis } from "@konverge/infra-redis";
export type { ObtainedRedis, RunningRedis, StartRedisOptions } from "@konverge/infra-redis";
export type { Fault, FaultEffect } from "./serve/fault-rules.ts";
export { createInProcessServer, resourceOfPath } from "./server/in-process-server.ts";
export type {
  InProcessAnswer,
  InProcessRequest,
  InProcessServer,
  StoreChange,
} from "./server/in-process-server.ts";
export { createApiServer } from "./server/api-server.ts";
export type { ApiServerOptions, EmbeddedApiServer } from "./server/api-server.ts";
