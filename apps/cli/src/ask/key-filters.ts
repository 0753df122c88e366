import type { KeyQuery } from "@konverge/client";
import { KEY_PHASES } from "@konverge/contracts";
import type { Command } from "commander";
import { pick, type PageFlags } from "./show-pages.ts";

/** By what lists of keys are narrowed. */
export interface KeyFlags extends PageFlags {
  readonly controller?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly phase?: (typeof KEY_PHASES)[number];
}

/** How the fields of such a query are typed. */
export const KEY_OPTIONS = {
  options: { "/name": "--name", "/controller": "--controller" },
} as const;

export function withNameFilters(command: Command): Command {
  return command
    .option("--controller <name>", "default: all")
    .option("-n, --namespace <name>", "_ for cluster-scoped objects")
    .option("--name <part>", "any part of the object's name");
}

export function withKeyFilters(command: Command): Command {
  return withNameFilters(command).option("--phase <phase>", `one of ${KEY_PHASES.join(", ")}`);
}

export function keyQueryOf(flags: KeyFlags, cluster: string): KeyQuery {
  const filters = pick(flags, ["controller", "namespace", "name", "phase", "cursor"]);
  return { cluster, limit: Number(flags.limit), ...filters };
}
