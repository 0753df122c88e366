/**
 * The embedded API server in a process of its own. Writes its kubeconfig to the file of its first argument, and its audit log
 * to that of the second one.
 */
import { writeFileSync } from "node:fs";
import { createApiServer } from "@konverge/apiserver";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

const [, , kubeconfigPath = "", auditLog] = process.argv;
const server = await createApiServer(auditLog === undefined ? {} : { auditLog });
writeFileSync(kubeconfigPath, server.kubeconfig);
await sayReadyUntilStdinEnds();
await server.close();
