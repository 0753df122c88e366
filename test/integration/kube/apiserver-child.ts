/** An embedded API server in a separate process, to be killed by a test. Prints its URL. */
import { createApiServer } from "@konverge/apiserver";

const [, , dataDir = ""] = process.argv;
const server = await createApiServer({ dataDir });
process.stdout.write(`${server.url}\n`);
