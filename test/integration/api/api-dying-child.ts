/** An API that starts a run and dies before it stores the response. */
import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";

const [url = "", prefix = "", key = "", body = ""] = process.argv.slice(2);
const access = openQueueAccess({ redis: { url }, prefix, onError: () => undefined });
const die = async () => void process.kill(process.pid, "SIGKILL");
const begin = access.answers.begin.bind(access.answers);
Object.assign(access.answers, {
  begin: async (...request: Parameters<typeof begin>) => {
    const begun = await begin(...request);
    return "claim" in begun ? { claim: { ...begun.claim, keep: die } } : begun;
  },
});
const api = createApi({
  access,
  guards: openGuardControl({ redis: { url }, prefix }),
  metrics: createMetrics({ version: "test" }),
  token: undefined,
  cluster: "default",
  onError: (error) => process.stderr.write(`${String(error)}\n`),
});
const headers = { "content-type": "application/json", host: "localhost", "idempotency-key": key };
// As a client does, a request that missed the deadline of Redis is repeated.
for (let status = 503; status === 503;) {
  const request = new Request("http://localhost/v1/runs", { method: "POST", headers, body });
  ({ status } = await api.fetch(request));
}
process.stderr.write("the API answered, although it should have died\n");
process.exit(1);
