/** The embedded API server in a process of its own. Writes its kubeconfig to the file of its argument. */
import { writeFileSync } from "node:fs";
import { createApiServer } from "@konverge/apiserver";
import { sayReadyUntilStdinEnds } from "./peer-process.ts";

const server = await createApiServer();
writeFileSync(process.argv[2] ?? "", server.kubeconfig);
await sayReadyUntilStdinEnds();
await server.close();
