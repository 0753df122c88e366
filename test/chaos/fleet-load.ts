import type { RequestClass } from "@konverge/queue";
import { COUNTER_NAMES, fleetKey, PLAIN_NAMES, type ControllerName } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";
import { nowUs } from "./fleet-journal.ts";

/** A request that the queue acknowledged. */
export interface Acknowledged {
  readonly id: string;
  readonly key: string;
  readonly controller: ControllerName;
  readonly askedAtUs: number;
  readonly atUs: number;
}

export interface FleetLoad {
  readonly acknowledged: readonly Acknowledged[];
  /** Requests that got no answer, or a refusal. Nothing is promised about them. */
  readonly refused: number;
  request(controller: ControllerName, name: string, requestClass?: RequestClass): Promise<void>;
  /** Requests random keys until `stop`. */
  start(): void;
  stop(): Promise<void>;
}

const PAUSE_MS = 30;
const CLASSES: readonly RequestClass[] = ["interactive", "event", "retry", "resync"];

/** Asks for reconciles and remembers which requests were acknowledged. */
export function createLoad(fleet: Fleet, random: () => number): FleetLoad {
  const acknowledged: Acknowledged[] = [];
  const names: readonly (readonly [ControllerName, string])[] = [
    ...COUNTER_NAMES.map((name) => ["counter", name] as const),
    ...PLAIN_NAMES.map((name) => ["plain", name] as const),
  ];
  let refused = 0;
  let loop: Promise<void> | undefined;
  let isOn = false;

  const request: FleetLoad["request"] = async (controller, name, requestClass = "event") => {
    const key = fleetKey(controller, fleet.namespace, name);
    const askedAtUs = nowUs();
    try {
      // A trigger by a person: the plain handlers answer it with a timer.
      const accepted = await fleet
        .queue(controller)
        .request(key, { kind: "cli", by: "chaos" }, { class: requestClass });
      acknowledged.push({
        id: accepted.id,
        key: accepted.key,
        controller,
        askedAtUs,
        atUs: nowUs(),
      });
    } catch {
      refused += 1;
    }
  };
  const run = async () => {
    while (isOn) {
      const [controller, name] = names[Math.floor(random() * names.length)] ?? ["plain", "plain-0"];
      const requestClass = CLASSES[Math.floor(random() * CLASSES.length)] ?? "event";
      await request(controller, name, requestClass);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
  return {
    acknowledged,
    get refused() {
      return refused;
    },
    request,
    start() {
      isOn = true;
      loop = run();
    },
    async stop() {
      isOn = false;
      await loop;
    },
  };
}
