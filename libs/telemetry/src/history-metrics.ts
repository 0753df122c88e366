import { Counter, type Registry } from "prom-client";

/** The metrics of reconcile loops, contention and hints. */
export interface HistoryMetrics {
  /** Creates the series of a controller with the value 0. */
  addHistory(
    controller: string,
    labels: { readonly kinds: readonly string[]; readonly hints: readonly string[] },
  ): void;
  /** A key in a reconcile loop was found. */
  loopFound(loop: { readonly controller: string; readonly kind: string }): void;
  /** Fields changed ownership between the controller and another manager. */
  ownershipFlipped(flip: {
    readonly controller: string;
    readonly manager: string;
    readonly flips: number;
  }): void;
  /** An attempt got a hint of docs/hints.md. */
  hintGiven(hint: { readonly controller: string; readonly hint: string }): void;
}

/** Limits the label values, because manager names are external input. Further managers count as `other`. */
const MOST_MANAGERS = 50;
const OTHER = "other";

export function createHistoryMetrics(registry: Registry): (cluster: string) => HistoryMetrics {
  const counter = <Label extends string>(name: string, help: string, label: Label) =>
    new Counter({
      name: `konverge_${name}`,
      help,
      labelNames: ["cluster", "controller", label],
      registers: [registry],
    });
  const loops = counter(
    "reconcile_loops_total",
    "Total number of reconcile loops detected.",
    "kind",
  );
  const flips = counter(
    "ownership_flips_total",
    "Total number of ownership flips between the controller and a manager.",
    "manager",
  );
  const hints = counter("hints_total", "Total number of attempts with a hint.", "hint");
  const managers = new Set<string>();
  return (cluster) => ({
    addHistory(controller, labels) {
      for (const kind of labels.kinds) loops.inc({ cluster, controller, kind }, 0);
      for (const hint of labels.hints) hints.inc({ cluster, controller, hint }, 0);
      flips.inc({ cluster, controller, manager: OTHER }, 0);
    },
    loopFound: ({ controller, kind }) => loops.inc({ cluster, controller, kind }),
    ownershipFlipped({ controller, manager, flips: by }) {
      if (managers.size < MOST_MANAGERS) managers.add(manager);
      const label = managers.has(manager) ? manager : OTHER;
      flips.inc({ cluster, controller, manager: label }, by);
    },
    hintGiven: ({ controller, hint }) => hints.inc({ cluster, controller, hint }),
  });
}
