import { createLocalGate } from "@konverge/core";
import {
  createKubeClient,
  loadKubeCredentials,
  startLeaderElection,
  type KubeClient,
  type LeaderElection,
} from "@konverge/kube";
import { Lease } from "@konverge/kube/kinds";
import { createApiServer } from "@konverge/apiserver";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { testServers } from "./kube-servers.ts";
import { until } from "../../support/until.ts";

const namespace = "default";
const SHORT = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 900 };
let serial = 0;

interface Candidate {
  readonly election: LeaderElection;
  /** The events of all candidates of the test, in order. */
  readonly identity: string;
}

/** Candidates for one Lease and the order in which they led. */
function openElection(client: KubeClient) {
  const name = `election-${process.pid}-${Date.now()}-${++serial}`;
  const history: string[] = [];
  const stand = (identity: string, own: KubeClient = client, times: object = SHORT): Candidate => {
    const election = startLeaderElection({
      client: own,
      namespace,
      name,
      identity,
      onStartedLeading: (leading) => {
        history.push(`${identity} leads`);
        leading.addEventListener("abort", () => history.push(`${identity} ends`));
      },
      // A failed try is irrelevant here.
      onError: () => undefined,
      ...times,
    });
    onTestFinished(() => election.stop());
    return { election, identity };
  };
  const lease = () => client.get(Lease, { namespace, name });
  return { history, stand, lease, name };
}

describe.each(testServers())("leader election on $name", (target) => {
  let opened: Awaited<ReturnType<typeof target.open>>;
  beforeAll(async () => {
    opened = await target.open();
  });
  afterEach(async () => {
    const { items } = await opened.client.list(Lease, { namespace });
    for (const { metadata } of items) {
      if (metadata.name.startsWith("election-")) {
        await opened.client.delete(Lease, { namespace, name: metadata.name });
      }
    }
  });
  afterAll(() => opened.close());

  test("when the leader stops, the next one takes over without waiting for the Lease to expire", async () => {
    const { history, stand, lease } = openElection(opened.client);
    // By default, a Lease that is not released lasts 15 s.
    const hour = { leaseDurationMs: 3_600_000, renewDeadlineMs: 1_800_000, retryPeriodMs: 100 };
    const first = stand("first", undefined, hour);
    await until("the first leads", () => first.election.isLeader);
    const second = stand("second", undefined, hour);
    await until("the Lease is the first's", async () => {
      return (await lease()).spec?.holderIdentity === "first";
    });
    expect(second.election.isLeader).toBe(false);
    await first.election.stop();
    await until("the second leads", () => second.election.isLeader);
    expect(history).toEqual(["first leads", "first ends", "second leads"]);
    expect((await lease()).spec).toMatchObject({
      holderIdentity: "second",
      leaseDurationSeconds: 3_600,
      leaseTransitions: 1,
      renewTime: expect.stringMatching(/\.\d{6}Z$/),
    });
  });

  test("exactly one of many simultaneous candidates leads", async () => {
    const { history, stand } = openElection(opened.client);
    const all = Array.from({ length: 8 }, (_, n) => stand(`candidate-${n}`));
    await until("one leads", () => all.some(({ election }) => election.isLeader));
    await Promise.all(
      all.filter(({ election }) => !election.isLeader).map((it) => it.election.stop()),
    );
    expect(history).toHaveLength(1);
  });

  test("the leader recreates a deleted Lease", async () => {
    const { history, stand, lease, name } = openElection(opened.client);
    const quick = { leaseDurationMs: 60_000, renewDeadlineMs: 30_000, retryPeriodMs: 50 };
    const only = stand("only", undefined, quick);
    await until("it leads", () => only.election.isLeader);
    await opened.client.delete(Lease, { namespace, name });
    await until("it exists again", async () => {
      const found = await lease().catch(() => undefined);
      return found?.spec?.holderIdentity === "only";
    });
    expect(history).toEqual(["only leads"]);
  });
});

test("a leader without connection stops leading before its Lease expires, so that no two lead", async () => {
  const server = await createApiServer({});
  onTestFinished(() => server.close());
  const proxy = await startTcpProxy(Number(new URL(server.url).port));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const connect = (kubeconfigText: string) => {
    const client = createKubeClient({
      credentials: loadKubeCredentials({ kubeconfigText }),
      gate: createLocalGate({ ratePerSecond: 2_000, burst: 2_000 }),
      userAgent: "konverge-test/1",
    });
    onTestFinished(() => client.close());
    return client;
  };
  const { history, stand } = openElection(connect(server.kubeconfig));
  const lonely = connect(
    server.kubeconfig.replaceAll(server.url, `http://127.0.0.1:${proxy.port}`),
  );
  const first = stand("first", lonely);
  await until("the first leads", () => first.election.isLeader);
  // Tries so often that it takes over as soon as it may.
  const second = stand("second", undefined, { ...SHORT, retryPeriodMs: 20 });
  proxy.hold();
  await until("the second leads", () => second.election.isLeader);
  proxy.heal();
  expect(history).toEqual(["first leads", "first ends", "second leads"]);
});

test.each([
  { leaseDurationMs: 10_000, renewDeadlineMs: 10_000 },
  { renewDeadlineMs: 2_400, retryPeriodMs: 2_000 },
])("rejects inconsistent periods: %o", (times) => {
  const client = {} as KubeClient;
  const options = { client, namespace, name: "x", identity: "x", ...times };
  expect(() =>
    startLeaderElection({
      ...options,
      onStartedLeading: () => undefined,
      onError: () => undefined,
    }),
  ).toThrow(RangeError);
});
