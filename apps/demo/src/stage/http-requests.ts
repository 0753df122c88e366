import { KonvergeError } from "@konverge/core";

/** Asks for a reconcile of a pool as another system does, and returns the request's id. */
export async function requestReconcile(
  apiUrl: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const response = await fetch(`${apiUrl}/v1/reconciles`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      controller: "node-pool",
      namespace,
      name,
      reason: "asked by another system",
    }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (response.status !== 202) {
    throw new KonvergeError(
      "demo_failed",
      `POST /v1/reconciles answered ${response.status}: ${text}`,
    );
  }
  return (JSON.parse(text) as { id: string }).id;
}

/** True when an attempt that covers the request has ended for good. */
export async function waitForReconcile(apiUrl: string, id: string): Promise<boolean> {
  const url = `${apiUrl}/v1/reconciles/${encodeURIComponent(id)}?wait=20s`;
  const response = await fetch(url, { signal: AbortSignal.timeout(25_000) });
  if (!response.ok) throw new KonvergeError("demo_failed", `${url} answered ${response.status}`);
  return ((await response.json()) as { phase: string }).phase === "finished";
}
