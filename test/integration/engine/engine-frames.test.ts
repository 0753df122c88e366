import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import type { AttemptKube, ReconcileContext } from "@konverge/engine";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const CANARY = "c4n4ry-value-of-a-secret";

function readSize(widget: Widget): number {
  return (widget.spec as unknown as { nope: { size: number } }).nope.size;
}
function plan(widget: Widget): number {
  return readSize(widget) + 1;
}
class PoolError extends Error {}
async function readMissing(kube: AttemptKube): Promise<void> {
  await kube.mutate({ type: ConfigMap, name: "missing", namespace }, (draft) => {
    draft.data = {};
  });
}
async function failWithSecret(kube: AttemptKube): Promise<void> {
  const { data = {} } = await kube.get(Secret, { name: "frames", namespace });
  const text = Buffer.from(data["password"] ?? "", "base64").toString();
  const named = {
    [text]: () => {
      throw new Error(`${text}\n    at ${text} (/${text}.ts:1:1)`);
    },
  };
  named[text]?.();
}
const handlers: Readonly<Record<string, (context: ReconcileContext<Widget>) => unknown>> = {
  deep: ({ object }) => plan(object),
  own: () => {
    throw new PoolError("too small");
  },
  wrapped: ({ object }) => {
    try {
      plan(object);
    } catch (cause) {
      throw new Error("planning failed", { cause });
    }
  },
  call: ({ kube }) => readMissing(kube),
  secret: ({ kube }) => failWithSecret(kube),
};

describe.each(testServers())("frames of errors on $name", (target) => {
  const harness = useEngines(target, "frames.test.konverge.dev");
  const { stackTraceLimit } = Error;
  beforeAll(() => {
    // As in a worker process.
    Error.stackTraceLimit = 40;
  });
  afterAll(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  test("record and log show where a handler threw, and no value", async () => {
    const secret = { metadata: { name: "frames", namespace }, stringData: { password: CANARY } };
    await harness.client.create(Secret, secret);
    const { records, lines } = await harness.start({
      backoff: eager,
      reconcile: async (context) => {
        if (context.attempt === 1) await handlers[context.object.metadata.name]?.(context);
      },
    });
    const errors: Record<string, { code: string; frames: string[] }> = {};
    for (const name of Object.keys(handlers)) {
      await harness.make(name);
      await until(`${name} has failed and succeeded`, async () => {
        const [last, first] = await records(name);
        if (last?.parsed["outcome"] !== "done" || first === undefined) return false;
        errors[name] = first.parsed["error"] as unknown as { code: string; frames: string[] };
        return true;
      });
    }
    const file = String.raw`\/[^ ]*\/engine-frames\.test\.ts:\d+:\d+`;
    const { deep, own, wrapped, call } = errors;
    expect(deep?.code).toBe("TypeError");
    expect(deep?.frames.slice(0, 2)).toEqual([
      expect.stringMatching(new RegExp(`^at readSize \\(${file}\\)$`)),
      expect.stringMatching(new RegExp(`^at plan \\(${file}\\)$`)),
    ]);
    expect(deep?.frames.join("\n")).not.toContain("/libs/");
    expect(own?.code).toBe("PoolError");
    expect(wrapped?.frames).toContain("caused by TypeError");
    expect(wrapped?.frames.filter((frame) => frame.startsWith("at readSize"))).toHaveLength(1);
    expect(call?.frames[0]).toMatch(new RegExp(`^at (async )?readMissing \\(${file}\\)$`));
    const failed = lines.filter(({ message }) => message === "reconcile failed");
    const logged = failed.map(({ fields }) => fields["err"] as { type: string; stack: string });
    expect(logged.find(({ type }) => type === "TypeError")?.stack).toMatch(
      /^TypeError: Cannot read .*\n {4}at readSize \(/,
    );
    expect(errors["secret"]?.frames.length).toBeGreaterThan(0);
    expect(JSON.stringify([errors, lines])).not.toContain(CANARY);
    await harness.client.delete(Secret, { name: "frames", namespace });
  });
});
