import type { Controller } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import type { Asking } from "./run-with-client.ts";

/** Returns a controller as announced by the workers. @throws KonvergeError `unknown_controller` */
export async function findController(
  { client, cluster }: Pick<Asking, "client" | "cluster">,
  controller: string,
): Promise<Controller> {
  const { items } = await client.controllers.list({ cluster });
  const known = items.find(({ name }) => name === controller);
  if (known !== undefined) return known;
  const names = items.map(({ name }) => name).join(", ") || "none";
  throw new KonvergeError(
    "unknown_controller",
    `cluster "${cluster}" has no controller "${controller}"; known: ${names}`,
  );
}
