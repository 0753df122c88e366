import { execFile } from "node:child_process";
import { findKedaScaler } from "../../infra/keda/find-keda-scaler.js";
import { isLongRun } from "./test-run.ts";

/** A trigger of a ScaledObject, and the parameters of its TriggerAuthentication. */
export interface KedaTrigger {
  readonly type: string;
  readonly metricType?: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly authParams?: Readonly<Record<string, string>>;
}

/** What KEDA tells the HorizontalPodAutoscaler. */
export interface KedaAnswer {
  readonly metricType: string;
  readonly target: string;
  /** Kubernetes quantities, such as `1500m`. */
  readonly values: readonly string[];
  readonly isActive: boolean;
  readonly error?: string;
}

/** Returns the function that asks KEDA's scalers, or the reason if they are missing. Only a long run builds them. */
export async function openKeda(): Promise<
  | { readonly ask: (triggers: readonly KedaTrigger[]) => Promise<KedaAnswer[]> }
  | { readonly missing: string }
> {
  const found = await findKedaScaler({
    log: (line) => console.error(line),
    build: isLongRun,
    env: { ...process.env, CI: "" },
  });
  if ("missing" in found) {
    return isLongRun
      ? found
      : { missing: "KEDA's scalers are not built; `npm run test:long -- keda` builds them" };
  }
  const ask = async (triggers: readonly KedaTrigger[]) => {
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile(found.path, [], (error, stdout) => {
        if (error === null) resolve(stdout);
        else reject(error);
      });
      child.stdin?.end(JSON.stringify(triggers));
    });
    return JSON.parse(output) as KedaAnswer[];
  };
  return { ask };
}
