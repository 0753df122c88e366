import { makeInformer, type V1ConfigMap, Watch } from "@kubernetes/client-node";
import { has, type World } from "./world.ts";

/** An informer with a label selector, while objects enter and leave the selection, and after a stop. */
export async function informer({ config, core, namespace, say }: World): Promise<void> {
  const labelSelector = "app in (in)";
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector });
  const lines: string[] = [];
  const followed = makeInformer(config, path, list, labelSelector);
  for (const verb of ["add", "update", "delete"] as const) {
    followed.on(verb, (one: V1ConfigMap) =>
      lines.push(`${verb} ${one.metadata?.name} ${JSON.stringify(one.data ?? {})}`),
    );
  }
  followed.on("connect", () => lines.push("connect"));
  followed.on("error", (error: unknown) => lines.push(`error ${String(error)}`));
  const create = (name: string, app: string) =>
    core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels: { app } } } });
  const change = async (name: string, app: string, n: string) => {
    const body = await core.readNamespacedConfigMap({ namespace, name });
    Object.assign(body, { data: { n } });
    Object.assign(body.metadata ?? {}, { labels: { app } });
    await core.replaceNamespacedConfigMap({ namespace, name, body });
  };
  await create("before", "in");
  await create("other", "out");
  await followed.start();
  for (const [name, app] of [
    ["in", "in"],
    ["moving", "in"],
    ["out", "out"],
  ] as const) {
    await create(name, app);
  }
  await has(lines, "add moving");
  await change("in", "in", "1");
  await change("moving", "out", "1");
  await change("out", "in", "1");
  await core.deleteNamespacedConfigMap({ namespace, name: "before" });
  await has(lines, "delete before");
  await followed.stop();
  // Missed while the informer is stopped; it continues from its last version.
  await change("in", "in", "2");
  await core.deleteNamespacedConfigMap({ namespace, name: "out" });
  await create("late", "in");
  await followed.start();
  await has(lines, "add late");
  await followed.stop();
  for (const line of lines) say(line);
  say(`cached ${followed.list().map(nameOf).toSorted().join(" ")}`);
  say(`get ${nameOf(followed.get("in", namespace))} ${nameOf(followed.get("other", namespace))}`);
}

const nameOf = (one: V1ConfigMap | undefined) => one?.metadata?.name ?? "none";

/** Watches with their options: initial events, bookmarks, field selectors, time limits and expired versions. */
export async function watches({ config, core, namespace, say }: World): Promise<void> {
  for (const name of ["a", "b"]) {
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  }
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const run = async (title: string, query: Record<string, string | number | boolean>) => {
    const lines: string[] = [];
    const ended = new Promise<unknown>((resolve) => {
      void new Watch(config).watch(
        path,
        query,
        (phase: string, item: unknown) => lines.push(...describe(phase, item)),
        resolve,
      );
    });
    const error = await ended;
    say(
      `${title}: ${lines.toSorted().join(", ") || "no events"}; ${error instanceof Error ? error.message : String(error)}`,
    );
  };
  await run("from the start", { timeoutSeconds: 1 });
  await run("from version 0", { timeoutSeconds: 1, resourceVersion: "0" });
  await run("initial events", {
    timeoutSeconds: 1,
    sendInitialEvents: true,
    allowWatchBookmarks: true,
    resourceVersionMatch: "NotOlderThan",
  });
  await run("one name", { timeoutSeconds: 1, fieldSelector: "metadata.name=b" });
  await run("no such field", { timeoutSeconds: 1, fieldSelector: "data.a=b" });
  await run("a wrong version", { timeoutSeconds: 1, resourceVersion: "new" });
  await run("a version of the future", { timeoutSeconds: 1, resourceVersion: "999999999" });
  await run("a wrong match", { timeoutSeconds: 1, resourceVersionMatch: "Exact" });
}

/** One line, or none for a bookmark that a server sends when it chooses. */
function describe(phase: string, item: unknown): string[] {
  const { metadata = {}, message = "" } = item as {
    readonly metadata?: { readonly name?: string; readonly annotations?: object };
    readonly message?: string;
  };
  if (phase === "BOOKMARK" && metadata.annotations === undefined) return [];
  return [`${phase} ${metadata.name ?? JSON.stringify(metadata.annotations ?? message)}`];
}
