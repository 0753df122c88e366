import type { KeyItem, Overview, OverviewProblem } from "@konverge/contracts";
import { parseKey } from "@konverge/core";
import type { Run, Worker } from "@konverge/client";
import { age, span } from "../text/age.ts";
import type { Cell } from "../text/columns.ts";
import { problemRows } from "../text/status-text.ts";
import { outcomeCell, toneCell } from "../text/tone.ts";
import { noteOf } from "../text/run-text.ts";
import type { TopData } from "./read-top.ts";
import type { TopState } from "./top-state.ts";

const NONE = "-";

/** The target of Enter. */
export type TopTarget =
  | { readonly kind: "controller"; readonly name: string }
  | { readonly kind: "object"; readonly key: string }
  | { readonly kind: "run"; readonly id: string }
  | { readonly kind: "text"; readonly rows: readonly (readonly Cell[])[] };

interface TopRow {
  readonly cells: readonly Cell[];
  readonly target: TopTarget;
}

export interface TopTable {
  readonly head: readonly string[];
  readonly rows: readonly TopRow[];
  /** Shown instead of an empty table. */
  readonly empty: string;
}

/** Returns the rows of the view that match the filter. */
export function tableOf(data: TopData, { view, filter, controller }: TopState): TopTable {
  const table = {
    controllers: () => controllerTable(data.overview),
    problems: () => problemTable(data.overview.problems),
    objects: () => objectTable(data.objects, controller),
    runs: () => runTable(data.runs),
    workers: () => workerTable(data.workers),
  }[view]();
  if (filter === "") return table;
  const wanted = filter.toLowerCase();
  const rows = table.rows.filter(({ cells }) =>
    cells.some((cell) => textOf(cell).toLowerCase().includes(wanted)),
  );
  return { ...table, rows, empty: `nothing matches "${filter}"` };
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

function controllerTable({ controllers, workflows }: Overview): TopTable {
  const rows = controllers.map((row): TopRow => {
    const { failed, all } = lastMinutes(row.minutes);
    const cells: Cell[] = [
      row.name,
      String(row.waiting),
      row.slots === undefined ? String(row.active) : `${row.active}/${row.slots}`,
      String(row.delayed),
      bad(row.deadLetters, row.deadLetters >= 100 ? "100+" : String(row.deadLetters)),
      String(all),
      bad(failed, all === 0 ? NONE : `${Math.round((100 * failed) / all)} %`),
      row.p50Ms === undefined ? NONE : span(row.p50Ms),
      row.p99Ms === undefined ? NONE : span(row.p99Ms),
      row.oldestRequestAgeMs === undefined ? NONE : span(row.oldestRequestAgeMs),
      row.workers === 0 ? { text: "0", style: "red" } : String(row.workers),
    ];
    return { cells, target: { kind: "controller", name: row.name } };
  });
  const flows = workflows.map(({ name, runs, workers }): TopRow => {
    const waiting = runs.queued + runs.waiting;
    const cells: Cell[] = [
      `workflow.${name}`,
      String(waiting),
      String(runs.running + runs.compensating),
      String(runs.paused + runs.pausing),
      bad(runs.blocked, String(runs.blocked)),
      NONE,
      NONE,
      NONE,
      NONE,
      NONE,
      workers === 0 ? { text: "0", style: "red" } : String(workers),
    ];
    const facts = Object.entries(runs).map(([status, count]) => [toneCell(status), String(count)]);
    return { cells, target: { kind: "text", rows: [["workflow", name], ...facts] } };
  });
  return {
    head: "CONTROLLER,WAITING,RUNNING,DELAYED,DEAD,5 MIN,FAILED,P50,P99,OLDEST,WORKERS".split(","),
    rows: [...rows, ...flows],
    empty: "no controllers or workflows; start a worker",
  };
}

/** Counts the attempts of the last five minutes. */
function lastMinutes(minutes: Overview["controllers"][number]["minutes"]) {
  const counts = { failed: 0, all: 0 };
  for (const { ok, failed, conflict } of minutes.slice(-5)) {
    counts.failed += failed;
    counts.all += ok + failed + conflict;
  }
  return counts;
}

function bad(count: number, text: string): Cell {
  return count > 0 ? { text, style: "red" } : text;
}

function problemTable(problems: readonly OverviewProblem[]): TopTable {
  return {
    head: ["LEVEL", "SINCE", "PROBLEM"],
    rows: problems.map((problem) => ({
      cells: [toneCell(problem.level), age(problem.since), problem.message],
      target: { kind: "text", rows: problemRows(problem) },
    })),
    empty: "no problems",
  };
}

function objectTable(objects: readonly KeyItem[], controller: string | undefined): TopTable {
  return {
    head: ["CONTROLLER", "OBJECT", "PHASE", "FAILURES", "LAST", "NEXT", "NOTE"],
    rows: objects.map((item): TopRow => {
      const { key, phase, failures, lastOutcome, nextAt, paused, deadLetter } = item;
      const { controller: name, namespace, name: object } = parseKey(key);
      const cells: Cell[] = [
        name,
        namespace === undefined ? object : `${namespace}/${object}`,
        toneCell(phase),
        String(failures),
        outcomeCell(lastOutcome),
        age(nextAt),
        paused?.reason ?? deadLetter?.error?.message ?? NONE,
      ];
      return { cells, target: { kind: "object", key } };
    }),
    empty:
      controller === undefined
        ? "no object is dead-lettered, backing off or paused"
        : `no object of ${controller} is dead-lettered, backing off or paused`,
  };
}

function runTable(runs: readonly Run[]): TopTable {
  return {
    head: ["RUN", "STATUS", "AGE", "NOTE"],
    rows: runs.map((run) => ({
      cells: [run.id, toneCell(run.status), age(run.createdAt), noteOf(run) || NONE],
      target: { kind: "run", id: run.id },
    })),
    empty: "no runs",
  };
}

function workerTable(workers: readonly Worker[]): TopTable {
  return {
    head: [
      "WORKER",
      "ROLE",
      "AGE",
      "SLOTS",
      "PER MIN",
      "LEADS",
      "MEMORY",
      "DELAY",
      "VERSION",
      "HOST",
      "CONTROLLERS",
    ],
    rows: workers.map((worker): TopRow => {
      const { workerId, role, startedAt, version, host, controllers } = worker;
      const facts = Object.entries(worker).map(([name, value]) => [
        name,
        typeof value === "string" ? value : JSON.stringify(value),
      ]);
      return {
        cells: [
          workerId,
          role,
          age(startedAt),
          ...loadCells(worker),
          version,
          host,
          controllers.join(", "),
        ],
        target: { kind: "text", rows: facts },
      };
    }),
    empty: "no live workers",
  };
}

/** Returns the slots in use, the attempts per minute, the number of led controllers, the memory, and the delay of the event loop. */
function loadCells({ load }: Worker): Cell[] {
  if (load === undefined) return [NONE, NONE, NONE, NONE, NONE];
  const slots = Object.values(load.slots);
  const running = slots.reduce((sum, each) => sum + each.running, 0);
  const limit = slots.reduce((sum, each) => sum + each.limit, 0);
  const memory = `${Math.round(load.memoryBytes / 1_048_576)} MiB`;
  const { attemptsPerMinute: rate, leads } = load;
  const more = [rate, leads?.length].map((count) => (count === undefined ? NONE : String(count)));
  return [`${running}/${limit}`, ...more, memory, span(Math.round(load.eventLoopDelayMs))];
}
