import { KubeConfig } from "@kubernetes/client-node";
import { Pool } from "undici";

/** A minimal client of the API server: kept-alive connections, JSON in and out. */
export interface BareClient {
  /** @throws Error with the response body for every status other than 2xx */
  send(method: "GET" | "PATCH", path: string, mergePatch?: object): Promise<unknown>;
  close(): Promise<void>;
}

export function openBareClient(kubeconfig: string, connections: number): BareClient {
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  const decode = (text: string | undefined) => Buffer.from(text ?? "", "base64").toString();
  const user = config.getCurrentUser();
  const cluster = config.getCurrentCluster();
  const pool = new Pool(cluster?.server ?? "", {
    connections,
    connect: {
      ca: decode(cluster?.caData),
      cert: decode(user?.certData),
      key: decode(user?.keyData),
    },
  });
  return {
    close: () => pool.close(),
    async send(method, path, mergePatch) {
      const answer = await pool.request({
        method,
        path,
        headers: {
          accept: "application/json",
          ...(mergePatch === undefined ? {} : { "content-type": "application/merge-patch+json" }),
        },
        ...(mergePatch === undefined ? {} : { body: JSON.stringify(mergePatch) }),
      });
      const body: unknown = await answer.body.json();
      if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(body)}`);
      return body;
    },
  };
}
