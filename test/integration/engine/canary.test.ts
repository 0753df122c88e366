import { createApi, openQueueAccess } from "@konverge/api";
import { ensureError, TerminalError, type ApiObject, type ResourceType } from "@konverge/core";
import { defineController, type AttemptKube, type ReconcileContext } from "@konverge/engine";
import { openGuardControl } from "@konverge/guard";
import { ignoreNotFound } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { createControllerRegistry, createHistoryWriter } from "@konverge/queue";
import { createLogger } from "@konverge/telemetry";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { watchCommands } from "../../contract/watch-commands.ts";
import { eager, namespace, useEngines, type StartedEngine } from "./engine-harness.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

interface SecretObject extends ApiObject {
  data?: Record<string, string>;
  stringData?: Record<string, string>;
}

const CANARIES = {
  data: "canary-in-data-7Qx",
  stringData: "canary-in-string-data-9Lm",
  label: "canary-in-label-2Vt",
  annotation: "canary-in-annotation-4Rk",
  spec: "canary-in-spec-8Wd",
};
/** Not secret: must be found everywhere, or the search proves nothing. */
const MARKER = "marker-that-may-be-seen";
const base64 = (text: string) => Buffer.from(text).toString("base64");
const needles = Object.values(CANARIES).flatMap((canary) => [canary, base64(canary)]);
const expectClean = (where: string, text: string) => {
  for (const needle of needles) {
    const at = text.indexOf(needle);
    if (at >= 0)
      throw new Error(`${where} holds ${needle}: ${text.slice(Math.max(0, at - 300), at + 60)}`);
  }
};

type Handler<T extends ApiObject> = (context: ReconcileContext<T>) => Promise<void>;

describe.each(testServers())("P12: canaries on $name", (target) => {
  const harness = useEngines(target, "canary.test.konverge.dev");
  let watched: Awaited<ReturnType<typeof watchCommands>>;
  let lines: string[];

  beforeEach(async () => {
    lines = [];
    watched = await watchCommands(harness.queues.url);
  });
  afterEach(async () => {
    watched[Symbol.dispose]();
    for (const type of [Secret, ConfigMap]) {
      const { items } = await harness.client.list(type, { namespace, labelSelector: "canary" });
      for (const { metadata } of items) {
        await harness.client.delete(type, { namespace, name: metadata.name }).catch(ignoreNotFound);
      }
    }
  });

  const commands = () => watched.commands.map(({ args }) => args.join(" ")).join("\n");
  const log = () =>
    createLogger({
      service: "test",
      version: "test",
      level: "trace",
      destination: { write: (line: string) => void lines.push(line) },
    });
  /** All data of this test's queues in Redis. */
  const dump = async () => {
    const { redis, prefix } = harness.queues;
    const texts: string[] = [];
    for (const key of await redis.keys(`${prefix}*`)) {
      const kind = await redis.type(key);
      const value =
        kind === "string"
          ? await redis.get(key)
          : kind === "hash"
            ? await redis.hgetall(key)
            : kind === "list"
              ? await redis.lrange(key, 0, -1)
              : kind === "set"
                ? await redis.smembers(key)
                : kind === "zset"
                  ? await redis.zrange(key, "0", "-1")
                  : await redis.xrange(key, "-", "+");
      texts.push(`${key} ${JSON.stringify(value)}`);
    }
    return texts.join("\n");
  };
  const start = async (controller: Parameters<typeof harness.startController>[0]) => {
    const history = createHistoryWriter({
      redis: harness.queues.target,
      prefix: harness.queues.prefix,
      cluster: "default",
      budgetBytes: 10_000_000,
      onError: () => undefined,
    });
    const started = await harness.startController(controller, { log: log(), history });
    return { ...started, close: () => history.close() };
  };
  /** The responses of the API about these keys. */
  const pages = async ({ controller, metrics }: StartedEngine, names: readonly string[]) => {
    const redis = harness.queues.target;
    const { prefix } = harness.queues;
    const { name, for: type } = controller;
    const registry = createControllerRegistry({ redis, cluster: "default", prefix });
    await registry.announce([{ name, cluster: "default", ...pick(type) }]);
    await registry.close();
    const access = openQueueAccess({
      redis: harness.queues.apiTarget,
      prefix,
      onError: () => undefined,
    });
    const guards = openGuardControl({ redis, prefix });
    const api = createApi({
      access,
      guards,
      metrics,
      token: undefined,
      cluster: "default",
      onError: () => undefined,
    });
    const paths = [
      "/",
      "/metrics",
      "/v1/attempts?cluster=default&limit=100",
      "/v1/contention?cluster=default",
      "/v1/controllers",
      ...names.flatMap((object) => [
        `/objects/default/${name}/${namespace}/${object}`,
        `/v1/objects/default/${name}/${namespace}/${object}`,
        `/v1/objects/default/${name}/${namespace}/${object}/contention`,
      ]),
      `/jobs/api/queues?activeQueue=&page=1&jobsPerPage=50`,
    ];
    const texts: string[] = [];
    for (const path of paths) {
      const request = new Request(`http://localhost:7070${path}`);
      request.headers.set("host", "localhost:7070");
      const response = await api.fetch(request);
      texts.push(`${path} ${response.status} ${await response.text()}`);
    }
    await access.close();
    await guards.close();
    return texts.join("\n");
  };
  const search = async (started: StartedEngine, names: readonly string[]) => {
    expectClean("a log line", lines.join(""));
    expectClean("a command to Redis", commands());
    expectClean("Redis", await dump());
    expectClean("a metric", await started.metrics.text());
    const served = await pages(started, names);
    expectClean("a page", served);
    return served;
  };
  const finished = async ({ queue, key }: StartedEngine, names: readonly string[]) => {
    for (const name of names) {
      await until(`${name} has ended for good`, async () => {
        const state = await queue.getKey(key(name));
        return state?.phase === "deadLettered" || state?.lastOutcome === "done";
      });
    }
  };

  test("exposes nothing of a Secret, whatever fails", async () => {
    const { client } = harness;
    const paths: Record<string, Handler<SecretObject>> = {
      "bad-base64": async ({ kube, object }) => {
        await kube.mutate(object, (draft) => {
          draft.data = { ...draft.data, broken: `%%%${CANARIES.data}` };
        });
      },
      conflict: async ({ kube, object }) => {
        await kube.mutate(object, async (draft) => {
          await client.mutate(Secret, { namespace, name: "conflict" }, (other) => {
            other.metadata.labels = {
              ...other.metadata.labels,
              [`l${Math.random()}`]: CANARIES.label,
            };
            other.data = { ...other.data, foreign: base64(CANARIES.data) };
          });
          draft.data = { ...draft.data, ours: base64(CANARIES.data) };
        });
      },
      fields: async ({ kube, object }) => {
        const fields = { strategy: "fields" } as const;
        await kube.mutate(
          object,
          (draft) => void (draft.data!["f"] = base64(CANARIES.data)),
          fields,
        );
        await kube.mutate(
          object,
          async (draft) => {
            await client.mutate(Secret, { namespace, name: "fields" }, (other) => {
              other.data = { ...other.data, token: base64(`${CANARIES.data}${Math.random()}`) };
            });
            draft.metadata.labels!["l"] = CANARIES.label;
            throw new Error(`${draft.data!["token"]} ${CANARIES.data}`);
          },
          fields,
        );
      },
      "fields-refused": async ({ kube, object }) => {
        const change = (draft: SecretObject) =>
          void (draft.data!["broken"] = `%%%${CANARIES.data}`);
        await kube.mutate(object, change, { strategy: "fields" });
      },
      "fields-conflict": async ({ kube, object }) => {
        await kube.mutate(
          object,
          async (draft) => {
            draft.data!["copy"] = draft.data!["token"]!;
            await client.mutate(Secret, { namespace, name: "fields-conflict" }, (other) => {
              other.data = { ...other.data, token: base64(`${CANARIES.data}${Math.random()}`) };
            });
          },
          { strategy: "fields" },
        );
      },
      "apply-conflict": async ({ kube, object }) => {
        await kube.apply(Secret, {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: object.metadata.name, namespace },
          data: { password: base64(`${CANARIES.data}-other`) },
        });
      },
      "bad-label": async ({ kube, object }) => {
        await kube.mutate(object, (draft) => {
          draft.metadata.labels = { ...draft.metadata.labels, bad: `${CANARIES.label} is bad!` };
        });
      },
      "bad-draft": async ({ kube, object }) => {
        await kube.mutate(object, (draft) => {
          draft.data = { ...draft.data, big: Symbol(CANARIES.data) as unknown as string };
        });
      },
      terminal: async ({ object }) => {
        throw new TerminalError(`${textOf(object)} and ${CANARIES.stringData} are wrong`);
      },
      "thrown-object": async ({ object }) => {
        // oxlint-disable-next-line typescript/only-throw-error -- the subject of this test
        throw object;
      },
      "thrown-text": async ({ object }) => {
        // oxlint-disable-next-line typescript/only-throw-error -- the subject of this test
        throw textOf(object);
      },
      "error-name": async ({ object }) => {
        throw Object.assign(new Error("x"), { name: textOf(object), code: textOf(object) });
      },
      caused: async ({ object }) => {
        throw new AggregateError(
          [new Error(textOf(object), { cause: object })],
          CANARIES.annotation,
        );
      },
      mutated: async ({ kube, object }) => {
        await kube.mutate(object, (draft) => {
          draft.metadata.labels = { ...draft.metadata.labels, more: CANARIES.label };
          draft.metadata.annotations = { more: CANARIES.annotation };
          draft.data = { ...draft.data, more: base64(CANARIES.data) };
        });
        await kube.create(Secret, {
          name: "made",
          labels: { canary: "yes" },
          stringData: { token: CANARIES.stringData },
        });
      },
      "not-copied": async ({ kube }) => {
        await kube.create(ConfigMap, {
          name: "copied",
          labels: { canary: `${CANARIES.label} is bad!` },
        });
      },
      logged: async ({ object, log: handlerLog }) => {
        handlerLog.info({ object, text: textOf(object) }, `read ${textOf(object)}`);
        handlerLog.warn({ deep: { er: [new Error(textOf(object), { cause: object })] } }, "failed");
        handlerLog.child({ password: textOf(object), of: object.data }).error({}, MARKER);
        handlerLog.error({ err: new Error(CANARIES.stringData) }, "a value of another field");
      },
      returned: async ({ object }) => object as never,
    };
    const names = Object.keys(paths);
    for (const name of names) {
      await client.create(Secret, {
        metadata: {
          namespace,
          name,
          labels: { canary: CANARIES.label },
          annotations: { note: CANARIES.annotation },
        },
        data: { password: base64(CANARIES.data) },
        stringData: { token: CANARIES.stringData },
      });
    }
    const started = await start(
      defineController({
        name: "secrets",
        for: {
          type: Secret,
          predicate: ({ object }) => {
            throw new Error(textOf(object));
          },
        },
        conflictRetry: "job",
        maxFailures: 2,
        backoff: eager,
        watches: [
          {
            type: Secret,
            map: (object) => {
              throw new Error(textOf(object));
            },
          },
        ],
        reconcile: async (context) => {
          const { name } = context.object.metadata;
          if (name.endsWith("conflict") && name !== "apply-conflict" && context.attempt > 3) return;
          await paths[context.object.metadata.name]?.(context);
        },
      }),
    );
    await finished(started, names);
    await started.engine.stop();
    await started.close();
    const served = await search(started, names);
    expect(served).toContain("withheld");
    expect(lines.join("")).toContain(MARKER);
    // The kind of failure and the field are allowed.
    const outcomes = await Promise.all(
      names.map(async (name) => [name, (await started.records(name)).at(-1)?.outcome]),
    );
    expect(Object.fromEntries(outcomes)).toMatchObject({
      "bad-base64": "rejected",
      conflict: "conflict",
      fields: "retry",
      "fields-refused": "rejected",
      "fields-conflict": "conflict",
      "apply-conflict": "rejected",
      "bad-label": "rejected",
      terminal: "terminal",
      "thrown-object": "retry",
      mutated: "done",
      logged: "done",
    });
  });

  test("keeps values that another controller read in a Secret out of its errors and logs", async () => {
    const { client } = harness;
    await client.create(Secret, {
      metadata: { namespace, name: "credentials", labels: { canary: "yes" } },
      data: { password: base64(CANARIES.data) },
      stringData: { token: CANARIES.stringData },
    });
    const read = (kube: AttemptKube) => kube.get(Secret, "credentials");
    const paths: Record<string, Handler<Widget>> = {
      thrown: async ({ kube }) => {
        throw new Error(`${MARKER}: login with ${textOf(await read(kube))} failed`);
      },
      "encoded-in-json": async ({ kube }) => {
        throw new TerminalError(`${MARKER}: ${JSON.stringify(await read(kube))}`);
      },
      "thrown-text": async ({ kube }) => {
        // oxlint-disable-next-line typescript/only-throw-error -- the subject of this test
        throw `${MARKER} ${textOf(await read(kube))}`;
      },
      listed: async ({ kube }) => {
        const [secret] = (await kube.list(Secret)).filter(
          ({ metadata }) => metadata.name === "credentials",
        );
        throw new Error(secret === undefined ? "none" : textOf(secret));
      },
      copied: async ({ kube }) => {
        await kube.create(ConfigMap, {
          name: "copied",
          labels: { canary: `${textOf(await read(kube))} is bad!` },
        });
      },
      written: async ({ kube, object }) => {
        const password = Buffer.from((await read(kube)).data?.["password"] ?? "", "base64");
        await kube.mutate(object, (draft) => {
          const url = `postgres://app:${password.toString()}@db`;
          draft.metadata.annotations = { url, note: `${MARKER} of a patch` };
        });
      },
      generated: async ({ kube }) => {
        const failed = await kube
          .mutate({ type: Secret, name: "credentials" }, (draft) => {
            draft.stringData = { fresh: CANARIES.annotation };
            draft.metadata.labels = { canary: "not good!" };
          })
          .then(() => undefined, ensureError);
        throw new Error(`${MARKER}: could not set ${CANARIES.annotation}`, { cause: failed });
      },
      logged: async ({ kube, log: handlerLog }) => {
        const secret = await read(kube);
        handlerLog.info(
          { secret, nested: { text: [textOf(secret)] } },
          `${MARKER} ${textOf(secret)}`,
        );
      },
    };
    const names = Object.keys(paths);
    await Promise.all(names.map((name) => harness.make(name)));
    const started = await start(
      defineController({
        name: "readers",
        for: harness.Widgets,
        maxFailures: 2,
        backoff: eager,
        reconcile: async (context) => paths[context.object.metadata.name]?.(context),
      }),
    );
    await finished(started, names);
    await started.engine.stop();
    await started.close();
    const served = await search(started, names);
    // The search works, and messages stay readable.
    expect(served).toContain(MARKER);
    expect(commands()).toContain(MARKER);
    expect(await dump()).toContain(`${MARKER}: login with (redacted) failed`);
    expect(await dump()).toContain(`${MARKER} of a patch`);
    expect(lines.join("")).toContain(MARKER);
  });

  test("treats a kind marked sensitive like a Secret", async () => {
    const group = "sensitive.test.konverge.dev";
    const { client } = harness;
    const Tokens = { ...(await installWidgets(client, group)), sensitive: true };
    const names = ["thrown", "mutated", "conflict"];
    for (const name of names) {
      await client.create(Tokens, {
        metadata: { namespace, name },
        spec: { token: CANARIES.spec },
      });
    }
    const started = await start(
      defineController({
        name: "tokens",
        for: Tokens,
        conflictRetry: "job",
        maxFailures: 2,
        backoff: eager,
        reconcile: async ({ object, kube, attempt, log: handlerLog }) => {
          handlerLog.info({ object }, `has ${String(object.spec?.["token"])}`);
          if (object.metadata.name === "thrown") throw new Error(JSON.stringify(object));
          if (attempt > 2) return;
          await kube.mutate(object, async (draft) => {
            if (object.metadata.name === "conflict") {
              await client.mutate(Tokens, { namespace, name: "conflict" }, (other) => {
                other.spec = { ...other.spec, [`more${attempt}`]: CANARIES.spec };
              });
            }
            draft.spec = { ...draft.spec, copy: CANARIES.spec };
          });
        },
      }),
    );
    await finished(started, names);
    await started.engine.stop();
    await started.close();
    const served = await search(started, names);
    expect(served).toContain("withheld");
    await removeWidgets(client, group);
  });
});

/** Its password, as a handler would read it. */
function textOf({ data }: SecretObject): string {
  return Buffer.from(data?.["password"] ?? "", "base64").toString();
}

function pick({ group, version, kind, resource, scope }: ResourceType) {
  return { group, version, kind, resource, scope };
}
