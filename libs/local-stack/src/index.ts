export { apiServerOf, embeddedApiServer, makeServerFolder } from "./api-server.ts";
export type { ApiServer, StackParts, StartApiServer } from "./api-server.ts";
export { startLocalStack } from "./start-local-stack.ts";
export type { LocalStack, LocalStackOptions } from "./start-local-stack.ts";
export { parseLogLine, startProcess } from "./start-process.ts";
export type { LocalProcess, LocalProcessOptions } from "./start-process.ts";
