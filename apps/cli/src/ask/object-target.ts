import type { ControllerObject } from "@konverge/client";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { parseCount } from "./parse-count.ts";
import { withClient, type ClientFlags } from "./run-with-client.ts";
import { targetsOf } from "./targets-of.ts";

export interface ObjectFlags extends ClientFlags {
  readonly namespace?: string;
}
export interface AttemptFlags extends ObjectFlags {
  readonly attempt?: number;
}

/** Adds the arguments of a command for one object. */
export function withObject(command: Command): Command {
  return withClient(command)
    .argument("<controller>", "Controller name or full key")
    .argument("[name]", "Object name")
    .option("-n, --namespace <name>", "Namespace; omit for cluster-scoped objects");
}

export function withAttempt(command: Command, description: string): Command {
  return command.option("--attempt <number>", description, parseCount);
}

/** @throws KonvergeError `invalid_request` unless the arguments name one object */
export function objectOf({
  controller,
  name,
  namespace,
  cluster,
}: {
  readonly controller: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly cluster: string;
}): ControllerObject {
  const words = name === undefined ? [] : [name];
  const [target, ...more] = targetsOf([controller, ...words], { cluster, namespace });
  if (target === undefined || more.length > 0) {
    throw new KonvergeError("invalid_request", "<name>: exactly one object is required");
  }
  return target;
}
