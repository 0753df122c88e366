import { setTimeout as sleep } from "node:timers/promises";
import { defineController, setCondition, TerminalError } from "konverge";
import { Certificate, Database, Quota, RoutePolicy, Tenant } from "./resources.ts";

const tenant = defineController({
  name: "tenant",
  for: Tenant,
  concurrency: 20,
  async reconcile({ object, kube }) {
    await kube.mutateStatus(object, (draft) => {
      draft.status.phase = "Ready";
      setCondition(draft, { type: "Ready", status: "True", reason: "Provisioned" });
    });
  },
});

/** Dead-letters for three reasons: a rate limit, a timeout and an invalid host. */
const certificateIssuer = defineController({
  name: "certificate-issuer",
  for: Certificate,
  maxFailures: 3,
  backoff: { failure: { baseMs: 100, capMs: 500 } },
  async reconcile({ object, kube, log }) {
    const { host } = object.spec;
    log.info({ host }, "ordering certificate");
    if (host.startsWith("limited")) {
      throw new Error("acme: rateLimited: too many certificates (50) issued in the last 168 hours");
    }
    if (host.startsWith("slow")) throw new Error("acme: no answer within 30 s");
    if (host.startsWith("invalid")) throw new TerminalError(`${host} is not a domain of the shop`);
    await kube.mutateStatus(object, (draft) => {
      draft.status.phase = "Issued";
      setCondition(draft, { type: "Ready", status: "True", reason: "Issued" });
    });
  },
});

/** Polls, so that calls are sent at all times. Its flaky databases fail two times in three. */
const tries = new Map<string, number>();
const database = defineController({
  name: "database",
  for: Database,
  concurrency: 4,
  backoff: { failure: { baseMs: 1_000, capMs: 5_000 } },
  loopProtection: "accept",
  async reconcile({ object, kube, requeueAfter }) {
    const { name } = object.metadata;
    const count = (tries.get(name) ?? 0) + 1;
    tries.set(name, count);
    await sleep(100);
    if (name.startsWith("flaky") && count % 3 !== 0) {
      throw new Error("dial tcp 10.4.2.11:5432: connect: connection refused");
    }
    await kube.mutateStatus(object, (draft) => {
      draft.status.phase = count % 2 === 0 ? "Available" : "Checking";
    });
    return requeueAfter("3s");
  },
});

/** Owns `spec.weight`, as does the other program. */
const routePolicy = defineController({
  name: "route-policy",
  for: RoutePolicy,
  loopProtection: "report",
  async reconcile({ object, kube }) {
    await kube.mutate(object, (draft) => {
      draft.spec.weight = 100;
    });
  },
});

/** A bug: each write is a new event, which causes the next write. */
const quota = defineController({
  name: "quota",
  for: Quota,
  async reconcile({ object, kube }) {
    await kube.mutate(object, (draft) => {
      draft.spec.checkedAt = new Date().toISOString();
    });
  },
});

export const controllers = [tenant, certificateIssuer, database, routePolicy, quota];
