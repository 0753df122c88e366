import { defined } from "@konverge/core";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { CallHost } from "./call-host.ts";
import { resolveTarget } from "./resolve-target.ts";

/** Records events about objects. Their failures do not fail the caller. */
export function createEventCall(host: CallHost): Pick<AttemptKube, "event"> {
  return {
    event: (about, event) =>
      host.call(async () => {
        try {
          const { type, name, uid } = await resolveTarget(host.client, about, host.namespace);
          const regarding = { ...type, ...name, ...defined({ uid }) };
          const message = host.scrub(event.message);
          await host.events.record(host.client, regarding, { ...event, message });
        } catch (error) {
          host.reportEventError(error);
        }
      }),
  };
}
