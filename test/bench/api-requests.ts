import type { KubeClient } from "@konverge/kube";

/**
 * Returns the requests for one resource that the API server has finished, by its own count (`apiserver_request_total`), so
 * that all programs are counted by the same rule. Lists and watches are left out.
 */
export async function countRequests(client: KubeClient, resource: string): Promise<number> {
  const { body } = await client.raw({ method: "GET", path: "/metrics" });
  if (typeof body !== "string") throw new Error("GET /metrics returned no text");
  let requests = 0;
  for (const line of body.split("\n")) {
    if (!line.startsWith("apiserver_request_total{")) continue;
    if (!line.includes(`resource="${resource}"`) || /verb="(LIST|WATCH)"/.test(line)) continue;
    requests += Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return requests;
}
