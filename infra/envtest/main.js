import { parseArgs } from "node:util";
import { buildAssets, EnvtestUnavailable, startControlPlane } from "./index.js";

const USAGE = `Start a real kube-apiserver with etcd, print the path of its kubeconfig and serve until Ctrl-C.
Both programs are downloaded, or built from Go modules where that fails (about five minutes, once).
  npm run envtest [-- --audit-log FILE]
  npm run envtest -- --build
  --audit-log FILE  write one JSON line per request to FILE
  --build           build both programs, print their folder and exit`;

const log = (/** @type {string} */ line) => console.error(`envtest: ${line}`);

try {
  const { values } = parseArgs({
    options: {
      build: { type: "boolean", default: false },
      "audit-log": { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) console.log(USAGE);
  else if (values.build) console.log(await buildAssets({ log }));
  else await serve(values["audit-log"]);
} catch (error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  const isUsage = code?.startsWith("ERR_PARSE_ARGS") ?? false;
  if (!isUsage && !(error instanceof EnvtestUnavailable)) throw error;
  log(isUsage ? `${message}\n${USAGE}` : message);
  process.exitCode = isUsage ? 2 : 1;
}

/** @param {string | undefined} auditLog */
async function serve(auditLog) {
  const plane = await startControlPlane({ log, build: true, auditLog });
  log(`kube-apiserver ${plane.version} is serving at ${plane.server}; press Ctrl-C to stop it`);
  console.log(plane.kubeconfigPath);
  await new Promise((resolve) => {
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
      process.once(signal, resolve);
  });
  await plane.stop();
}
