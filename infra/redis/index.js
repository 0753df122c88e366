export { checkRedisUrl, obtainRedis } from "./external.js";
export { findRedisServer } from "./find.js";
export { installRedis } from "./install.js";
export { startRedis } from "./start.js";
export { RedisUnavailable } from "./unavailable.js";
export { guard } from "../host/guardian.js";
