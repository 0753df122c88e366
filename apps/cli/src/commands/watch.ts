import { shortName } from "@konverge/core";
import type { ClientEvent } from "@konverge/client";
import type { AttemptRecord } from "@konverge/records";
import { InvalidArgumentError, type Command } from "commander";
import { withNameFilters } from "../ask/key-filters.ts";
import { plain } from "../text/plain-text.ts";
import { print, printNote } from "../text/output.ts";
import { runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { pick } from "../ask/show-pages.ts";
import { span } from "../text/age.ts";
import { attemptError } from "../text/reconcile-text.ts";

interface WatchFlags extends ClientFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly outcome?: AttemptRecord["outcome"];
  readonly since?: string;
  readonly count?: number;
}

/** Adds `reconcile watch`, which prints a line for each event. */
export function addWatchCommand(reconcile: Command): void {
  withNameFilters(
    withClient(
      reconcile.command("watch").description("Follow attempts, operator actions and breakers"),
    ),
  )
    .option("--outcome <outcome>", "Only attempts with this outcome, such as done or retry")
    .option("--since <event>", "Event ID to continue after (default: now)")
    .option("--count <n>", "Exit after this number of events", parseCount)
    .action((flags: WatchFlags) =>
      runWithClient(
        flags,
        async ({ client, cluster }) => {
          const filters = pick(flags, ["controller", "namespace", "name", "outcome"]);
          const { since: lastEventId } = flags;
          const options = lastEventId === undefined ? {} : { lastEventId };
          if (process.stderr.isTTY) printNote("watching; press Ctrl-C to stop");
          let left = flags.count ?? Infinity;
          for await (const event of client.events({ cluster, ...filters }, options)) {
            show(flags, event);
            left -= 1;
            if (left <= 0) return;
          }
        },
        { options: { "/controller": "--controller", "/last-event-id": "--since" } },
      ),
    );
}

function show({ output }: ClientFlags, event: ClientEvent): void {
  // The stream has several YAML documents.
  if (output === "yaml") process.stdout.write("---\n");
  print(output, { document: event, names: [nameOf(event)], table: () => plain(lineOf(event)) });
}

function nameOf(event: ClientEvent): string {
  switch (event.type) {
    case "attempt":
      return event.data.id;
    case "change":
      return event.data.id;
    case "guard":
      return event.data.cluster;
  }
}

function lineOf(event: ClientEvent): string {
  switch (event.type) {
    case "attempt": {
      const { startedAt, controller, namespace, name, outcome, durationMs } = event.data;
      const { managers } = event.data;
      const object = shortName({ namespace, name });
      const note = [
        attemptError(event.data),
        managers.length === 0 ? undefined : `conflict with ${managers.join(", ")}`,
      ].filter((part) => part !== undefined);
      return `${clock(startedAt)}  ${controller} ${object}  ${outcome}  ${span(durationMs)}  ${note.join("; ")}`.trimEnd();
    }
    case "change": {
      const { at, by, action, controller, namespace, name, filter, reason, count } = event.data;
      const place = [controller, namespace, name, filter].filter((part) => part !== undefined);
      const many = count === undefined ? "" : ` (${count})`;
      return `${clock(at)}  ${by}: ${action} ${place.join(" ")}${many}${reason === undefined ? "" : `: ${reason}`}`;
    }
    case "guard": {
      const { cluster, transition } = event.data;
      const { atMs, from, to, reason } = transition;
      return `${clock(new Date(atMs).toISOString())}  guard ${cluster}: ${from} -> ${to} (${reason})`;
    }
  }
}

/** UTC, as in logs. */
function clock(iso: string): string {
  return iso.slice(11, 19);
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new InvalidArgumentError("Use a whole number from 1.");
}
