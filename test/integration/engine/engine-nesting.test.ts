import { isKonvergeError } from "@konverge/core";
import type { AttemptKube } from "@konverge/engine";
import type { ResourceTarget } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const PROGRAMS = isLongRun ? 400 : 40;
const OBJECTS = ["a", "b", "c"] as const;
const WAYS = ["mutate", "mutateStatus", "fields", "createOrUpdate"] as const;
/** Far beyond the time that a program needs, so that a deadlock ends the test by this outcome. */
const TIMEOUT = "60s";

/** Codes of a handler that did not await a nested call; of several, in one error. */
const FAILURES: ReadonlySet<string> = new Set(["nested_mutate", "attempt_ended", "AggregateError"]);

/** One call of `mutate` by user code, and what its function does besides its change. */
interface Call {
  readonly target: (typeof OBJECTS)[number];
  readonly through: (typeof WAYS)[number];
  readonly isAwaited: boolean;
  /** A call inside the function: at once, after an await, or in a timer that may end after everything else. */
  readonly nested?: { readonly when: "now" | "afterAwait" | "inTimer"; readonly call: Call };
}

/** The calls of one handler: each list is made at once. */
type Program = readonly (readonly Call[])[];

function makeProgram(random: () => number): Program {
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const makeCall = (depth: number): Call => ({
    target: pick(OBJECTS),
    through: pick(WAYS),
    isAwaited: below(3) > 0,
    ...(depth < 2 && below(3) === 0
      ? {
          nested: {
            when: pick(["now", "afterAwait", "inTimer"] as const),
            call: makeCall(depth + 1),
          },
        }
      : {}),
  });
  return Array.from({ length: 1 + below(3) }, () =>
    Array.from({ length: 1 + below(3) }, () => makeCall(0)),
  );
}

describe.each(testServers())("calls of mutate by user code on $name", (server) => {
  const harness = useEngines(server, "nesting.test.konverge.dev");
  const targetOf = (name: string): ResourceTarget<Widget> => ({
    type: harness.Widgets,
    namespace,
    name,
  });
  const codeOf = (error: unknown) => (isKonvergeError(error) ? error.code : String(error));

  test.each([
    { what: "of the same object", outer: "a", inner: "a", fix: /same object.*one function/ },
    { what: "of another object", outer: "a", inner: "b", fix: /before or after/ },
  ])("nested_mutate: rejects a mutate in a mutate $what at once", async ({ outer, inner, fix }) => {
    for (const name of new Set([outer, inner])) await harness.make(name);
    let functions = 0;
    const { records } = await harness.start({
      timeout: TIMEOUT,
      predicate: ({ object }) => object.metadata.name === "run",
      backoff: eager,
      maxFailures: 1,
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== "run") return;
        await kube.mutate(targetOf(outer), async (draft) => {
          functions += 1;
          draft.spec = { written: true };
          await kube.mutateStatus(targetOf(inner), (other) => void (other.status["n"] = 1));
        });
      },
    });
    await harness.make("run");
    const record = await until("it ends", async () => (await records("run")).at(-1)?.parsed);
    expect(record).toMatchObject({
      outcome: "retry",
      writes: [],
      error: { code: "nested_mutate", message: expect.stringMatching(fix) },
    });
    expect(functions).toBe(1);
    expect((await harness.client.get(harness.Widgets, { namespace, name: outer })).spec).toEqual({
      size: 1,
    });
  });

  test("fails the outer mutate too if the inner one is not awaited, or its error is caught", async () => {
    for (const name of ["a", "b"]) await harness.make(name);
    const codes: string[] = [];
    const { records } = await harness.start({
      timeout: TIMEOUT,
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== "run") return;
        const inner = () => kube.mutate(targetOf("b"), (draft) => void (draft.spec = { n: 2 }));
        const forget = () => void inner().catch(() => undefined);
        const swallow = () =>
          inner().then(
            () => undefined,
            () => undefined,
          );
        for (const act of [forget, swallow]) {
          await kube
            .mutate(targetOf("a"), async (draft) => {
              draft.spec = { n: 1 };
              await act();
            })
            .catch((error: unknown) => codes.push(codeOf(error)));
        }
      },
    });
    await harness.make("run");
    await until("it ends", async () => (await records("run")).length > 0);
    expect(codes).toEqual(["nested_mutate", "nested_mutate"]);
  });

  test(`no order of calls waits for itself, loses a change or makes it twice (KONVERGE_TEST_SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const programs = new Map<string, Program>(
      Array.from({ length: PROGRAMS }, (_, n) => [`p${n}`, makeProgram(random)]),
    );
    for (const name of OBJECTS) await harness.make(name, { n: 0 });
    /** Acknowledged calls by object and field. */
    const acknowledged = new Map<string, number>();
    const wrong: string[] = [];
    /** Everything that user code has started, however late. */
    const started: Promise<void>[] = [];

    const make = async (kube: AttemptKube, call: Call, isNested: boolean): Promise<void> => {
      const { target, through, nested } = call;
      const inner = async () => {
        if (nested !== undefined) await make(kube, nested.call, true);
      };
      const change = async (draft: Widget): Promise<void> => {
        const part = through === "mutateStatus" ? "status" : "spec";
        const fields = (draft[part] ??= {});
        // Each way has its own field, since `fields` conflicts on nothing else.
        fields[through] = Number(fields[through] ?? 0) + 1;
        if (nested?.when === "afterAwait") await new Promise((resolve) => setImmediate(resolve));
        if (nested?.when === "inTimer") {
          const { promise, resolve } = Promise.withResolvers<void>();
          started.push(promise);
          setTimeout(() => void inner().finally(resolve), 5);
        } else if (nested?.call.isAwaited === true) {
          await inner();
        } else if (nested !== undefined) {
          started.push(inner());
        }
      };
      const isBad = nested !== undefined && nested.when !== "inTimer";
      try {
        if (through === "mutateStatus") await kube.mutateStatus(targetOf(target), change);
        else if (through === "fields") {
          await kube.mutate(targetOf(target), change, { strategy: "fields" });
        } else if (through === "createOrUpdate") {
          await kube.createOrUpdate(harness.Widgets, { namespace, name: target }, change);
        } else await kube.mutate(targetOf(target), change);
        if (isNested || isBad) wrong.push(`${JSON.stringify(call)} succeeded`);
        const id = `${target}.${through}`;
        acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1);
      } catch (error) {
        const code = codeOf(error);
        const expected = isNested ? ["nested_mutate", "attempt_ended"] : ["nested_mutate"];
        if (!(isNested || isBad) || !expected.includes(code)) {
          wrong.push(`${JSON.stringify(call)} failed: ${String(error)}`);
        }
      }
    };

    const { records } = await harness.start({
      timeout: TIMEOUT,
      concurrency: 8,
      maxFailures: 1,
      predicate: ({ object }) => programs.has(object.metadata.name),
      reconcile: async ({ object, kube }) => {
        for (const calls of programs.get(object.metadata.name) ?? []) {
          const made = calls.map((call) => ({ call, done: make(kube, call, false) }));
          started.push(...made.map(({ done }) => done));
          await Promise.all(made.filter(({ call }) => call.isAwaited).map(({ done }) => done));
        }
      },
    });
    for (const name of programs.keys()) await harness.make(name);
    for (const name of programs.keys()) {
      const record = await until(`${name} ends`, async () => (await records(name)).at(-1)?.parsed);
      // A call without await that fails is a failure of the handler.
      const isExpected = record.outcome === "done" || FAILURES.has(record.error?.code ?? "");
      if (!isExpected) wrong.push(`${name} ended as ${JSON.stringify(record)}`);
    }
    // A started call may start another one.
    for (let settled = 0; settled < started.length;) {
      settled = started.length;
      await Promise.all(started);
    }
    expect(wrong).toEqual([]);
    for (const name of OBJECTS) {
      const { spec, status } = await harness.client.get(harness.Widgets, { namespace, name });
      const found = { ...spec, ...status };
      for (const through of WAYS) {
        const id = `${name}.${through}`;
        expect(`${id} ${Number(found[through] ?? 0)}`).toBe(`${id} ${acknowledged.get(id) ?? 0}`);
      }
    }
  });
});
