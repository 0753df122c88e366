import type { RequestClass } from "@konverge/queue";
import { ConfigMap } from "@konverge/kube/kinds";
import {
  COUNTER_NAMES,
  fleetKey,
  hotObject,
  PLAIN_NAMES,
  type ControllerName,
} from "./fleet-contract.ts";
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

/** An acknowledged write of a writer outside the lanes. */
export interface StrangerWrite {
  readonly stamp: string;
  readonly count: number;
}

export interface FleetLoad {
  readonly acknowledged: readonly Acknowledged[];
  readonly strangers: readonly StrangerWrite[];
  /** Requests without a response, or rejected ones. They have no guarantee. */
  readonly refused: number;
  request(
    controller: ControllerName,
    name: string,
    requestClass?: RequestClass,
    kind?: "cli" | "http",
  ): Promise<void>;
  /** Increments the object of the lane from outside the fleet. */
  writeAsStranger(): Promise<void>;
  /** Makes the last requests: one per plain key while its handler runs, without a timer as a fallback. */
  requestWhileRunning(): Promise<void>;
  /** Requests random keys, and sometimes writes from outside, until `stop`. */
  start(): void;
  stop(): Promise<void>;
}

const PAUSE_MS = 30;
const STRANGER_PAUSE_MS = 150;
const LOOKS = 200;
const CLASSES: readonly RequestClass[] = ["interactive", "event", "retry", "background"];

/** Requests reconciles and remembers the acknowledged ones. */
export function createLoad(fleet: Fleet, random: () => number): FleetLoad {
  const acknowledged: Acknowledged[] = [];
  const names: readonly (readonly [ControllerName, string])[] = [
    ...COUNTER_NAMES.map((name) => ["counter", name] as const),
    ...PLAIN_NAMES.map((name) => ["plain", name] as const),
  ];
  const strangers: StrangerWrite[] = [];
  let stranger = 0;
  let refused = 0;
  let loops: Promise<unknown> | undefined;
  let isOn = false;

  const request: FleetLoad["request"] = async (
    controller,
    name,
    requestClass = "event",
    kind = "cli",
  ) => {
    const key = fleetKey(controller, fleet.namespace, name);
    const askedAtUs = nowUs();
    try {
      // For the default kind, the plain handlers arm a timer.
      const accepted = await fleet
        .queue(controller)
        .request(key, { kind, by: "chaos" }, { class: requestClass });
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
  const writeAsStranger = async () => {
    stranger += 1;
    const stamp = `stranger.${stranger}`;
    const target = { namespace: fleet.namespace, name: hotObject("lane") };
    let count = 0;
    try {
      await fleet.plane.admin.mutate(ConfigMap, target, (draft) => {
        count = Number(draft.data?.["count"] ?? 0) + 1;
        draft.data = { ...draft.data, [stamp]: String(count), count: String(count) };
      });
      strangers.push({ stamp, count });
    } catch {
      // The server was unavailable. The write may have been applied without a response.
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
  /** Separate, since an unavailable API server must not block the requests. */
  const estrange = async () => {
    while (isOn) {
      await writeAsStranger();
      await new Promise((resolve) => setTimeout(resolve, STRANGER_PAUSE_MS));
    }
  };
  const catchRunning = async (name: string) => {
    const key = fleetKey("plain", fleet.namespace, name);
    // A run may end before it is noticed.
    for (let looks = 0; looks < LOOKS; looks++) {
      if (looks % 20 === 0) await request("plain", name, "interactive", "http");
      if ((await fleet.queue("plain").getKey(key))?.phase === "running") break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await request("plain", name, "interactive", "http");
  };
  return {
    acknowledged,
    strangers,
    get refused() {
      return refused;
    },
    request,
    async requestWhileRunning() {
      await Promise.all(PLAIN_NAMES.map(catchRunning));
    },
    writeAsStranger,
    start() {
      isOn = true;
      loops = Promise.all([run(), estrange()]);
    },
    async stop() {
      isOn = false;
      await loops;
    },
  };
}
