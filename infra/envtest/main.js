import { parseArgs } from "node:util";
import { EnvtestUnavailable, startControlPlane } from "./index.js";

const USAGE = `Starts a real kube-apiserver with etcd, prints its kubeconfig's path and stays until Ctrl-C.
  npm run envtest [-- --build] [-- --audit-log FILE]
  --build           build both from Go modules first, if they are not there (about five minutes, once)
  --audit-log FILE  write one JSON line per request to FILE`;

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
  else await serve(values.build, values["audit-log"]);
} catch (error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  const isUsage = code?.startsWith("ERR_PARSE_ARGS") ?? false;
  if (!isUsage && !(error instanceof EnvtestUnavailable)) throw error;
  log(isUsage ? `${message}\n${USAGE}` : message);
  process.exitCode = isUsage ? 2 : 1;
}

/** @param {boolean} build @param {string | undefined} auditLog */
async function serve(build, auditLog) {
  const plane = await startControlPlane({ log, build, auditLog });
  log(`kube-apiserver ${plane.version} at ${plane.server}; Ctrl-C ends it`);
  console.log(plane.kubeconfigPath);
  await new Promise((resolve) => {
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
      process.once(signal, resolve);
  });
  await plane.stop();
}
