import { defined, SCHEDULE_OVERLAPS, type ScheduleOverlap } from "@konverge/core";
import type { ScheduleDetail } from "@konverge/contracts";
import { Option, type Command } from "commander";
import {
  actionOf,
  groupHelp,
  runWithClient,
  withAction,
  withClient,
  type ActionFlags,
  type ClientFlags,
} from "../ask/run-with-client.ts";
import { showWhenEnded, withWait, type WaitFlags } from "../ask/show-run.ts";
import { print, printNote } from "../text/output.ts";
import { backfillRows, scheduleDetails, scheduleRows } from "../text/schedule-text.ts";
import { runWatched, withWatch, type WatchFlags } from "../ask/show-watched.ts";

interface TriggerFlags extends ActionFlags, WaitFlags {
  readonly overlap?: ScheduleOverlap;
}
interface BackfillFlags extends ActionFlags {
  readonly from: string;
  readonly to: string;
  readonly overlap: ScheduleOverlap;
}

const HELP = `
  konverge schedule list
  konverge schedule show nightly
  konverge schedule pause nightly --reason "storage maintenance"
  konverge schedule resume nightly --reason "maintenance done"
  konverge schedule trigger nightly --reason "backup before the upgrade" --wait
  konverge schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-03T00:00:00Z --reason "lost backups"`;

const FIXES = {
  fixes: { not_found: "run `konverge schedule list` for the names" },
  options: { "/from": "--from", "/to": "--to", "/overlap": "--overlap", "/name": "<schedule>" },
};

export function addScheduleCommand(program: Command): void {
  const group = program
    .command("schedule")
    .description("Inspect, pause, trigger and backfill schedules of workflows")
    .addHelpText("afterAll", groupHelp(HELP));
  addList(group);
  addShow(group);
  addPause(group);
  addResume(group);
  addTrigger(group);
  addBackfill(group);
}

function addList(group: Command): void {
  withWatch(
    withClient(
      group.command("list").description("List schedules with their next time and last run"),
    ),
  ).action((flags: WatchFlags) =>
    runWatched(flags, async ({ client, cluster }) => {
      const list = await client.schedules.list({ cluster });
      return {
        document: list,
        items: list.items,
        names: list.items.map(({ name }) => name),
        table: () => scheduleRows(list.items),
        empty: "no schedules found; configure them with defineConfig({ schedules: [...] })",
      };
    }),
  );
}

function addShow(group: Command): void {
  withClient(
    withName(group.command("show")).description("Show a schedule with its next times"),
  ).action((name: string, flags: ClientFlags) =>
    runWithClient(
      flags,
      async ({ client, cluster }) => show(flags, await client.schedules.get({ cluster, name })),
      FIXES,
    ),
  );
}

function addPause(group: Command): void {
  withAction(
    withClient(
      withName(group.command("pause")).description(
        "Pause a schedule; its times are skipped until it is resumed",
      ),
    ),
  ).action((name: string, flags: ActionFlags) => change("pause", name, flags));
}

function addResume(group: Command): void {
  withAction(
    withClient(
      withName(group.command("resume")).description("Resume a schedule with its next time"),
    ),
  ).action((name: string, flags: ActionFlags) => change("resume", name, flags));
}

async function change(kind: "pause" | "resume", name: string, flags: ActionFlags): Promise<void> {
  await runWithClient(
    flags,
    async ({ client, cluster }) => {
      const { action, write } = actionOf(flags);
      if (flags.dryRun === true) {
        show(flags, await client.schedules.get({ cluster, name }));
        return printNote("dry run; showing the current state, nothing was changed");
      }
      show(flags, await client.schedules[kind]({ cluster, name }, action, write));
    },
    FIXES,
  );
}

function addTrigger(group: Command): void {
  withWait(
    withAction(
      withClient(
        withName(group.command("trigger")).description(
          "Start a run of a schedule now, also while it is paused",
        ),
      ),
    ),
  )
    .addOption(overlapOption("Action if an earlier run is active (default: the schedule's)"))
    .action((name: string, flags: TriggerFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          if (flags.dryRun === true) {
            show(flags, await client.schedules.get({ cluster, name }));
            return printNote("dry run; showing the current state, no run was started");
          }
          const { action, write } = actionOf(flags);
          const { overlap, output, wait } = flags;
          const body = { ...action, ...defined({ overlap }) };
          const started = await client.schedules.trigger({ cluster, name }, body, write);
          if (wait === true) return await showWhenEnded(client, started.id, flags);
          print(output, { document: started, names: [started.id], table: () => started.id });
          if (!started.created) printNote(`${started.id} is active; no run was started`);
        },
        FIXES,
      ),
    );
}

function addBackfill(group: Command): void {
  withAction(
    withClient(
      withName(group.command("backfill")).description(
        "Start the runs of past times that have none, oldest first",
      ),
    ),
  )
    .requiredOption("--from <time>", "First moment, ISO 8601 (required)")
    .requiredOption("--to <time>", "Last moment, ISO 8601 (required)")
    .addOption(overlapOption("Action if an earlier run is active").default("buffer-all"))
    .action((name: string, flags: BackfillFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const { action, write } = actionOf(flags);
          const { from, to, overlap, dryRun = false, output } = flags;
          const body = { ...action, from, to, overlap, dryRun };
          const filled = await client.schedules.backfill({ cluster, name }, body, write);
          print(output, {
            document: filled,
            items: filled.items,
            names: filled.items.map(({ run }) => run),
            table: () => backfillRows(filled.items),
            empty: "the schedule has no times in this range",
          });
          if (dryRun) printNote("dry run; no run was started");
        },
        FIXES,
      ),
    );
}

function withName(command: Command): Command {
  return command.argument("<schedule>", "Schedule name");
}

function overlapOption(text: string): Option {
  return new Option("--overlap <what>", text).choices(SCHEDULE_OVERLAPS);
}

function show({ output }: ClientFlags, schedule: ScheduleDetail): void {
  print(output, {
    document: schedule,
    names: [schedule.name],
    table: () => scheduleDetails(schedule),
  });
}
