import type { Settings } from "@konverge/contracts";
import { leaseName } from "@konverge/engine";
import { isForbidden, isNotFound, type KubeClient } from "@konverge/kube";
import { Lease } from "@konverge/kube/kinds";
import type { Config } from "@konverge/worker";
import { leaseHolder } from "../config/lease-holder.ts";
import { failedCheck, type Check } from "./check.ts";

const FIX = "start a worker with --role all or watch, or see its log for failed elections";

/** Checks that each controller has a leader. Without one, changes of objects request nothing. */
export async function checkLeaders(
  client: KubeClient,
  { prefix, leaseNamespace: namespace }: Settings,
  { controllers }: Pick<Config, "controllers">,
): Promise<Check[]> {
  return await Promise.all(
    controllers.map(async ({ name: controller }): Promise<Check> => {
      const check = `leader ${controller}`;
      const name = leaseName(prefix, controller);
      try {
        const holder = leaseHolder(await client.get(Lease, { namespace, name }));
        if (holder !== undefined) return { check, level: "ok", detail: holder };
        const detail = `the Lease ${namespace}/${name} has no current holder; ${FIX}`;
        return { check, level: "warn", detail };
      } catch (error) {
        if (isNotFound(error)) {
          const detail = `the Lease ${namespace}/${name} does not exist, so no worker has led yet; ${FIX}`;
          return { check, level: "warn", detail };
        }
        const { detail } = failedCheck(check, error, "warn");
        return { check, level: isForbidden(error) ? "skip" : "warn", detail };
      }
    }),
  );
}
