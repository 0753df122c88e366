import { createHash } from "node:crypto";
import { formatApiVersion, type ResourceType } from "@konverge/core";
import type { Controller, Log } from "@konverge/engine";
import type { AnnouncedDefinition, AnnouncedWorker } from "@konverge/queue";

/**
 * Identifies a version of a controller: its kind for display, and a digest of its options and of the source of its functions.
 * Code that the functions call is not included; `build` covers that.
 */
export function defineVersion(controller: Controller, build: string): AnnouncedDefinition {
  const { for: reconciled, sources, permissions: _role, ...options } = controller;
  const watched = sources.map(({ type, ...source }) => [kindOf(type), source]);
  const parts = [watched, options, build];
  const text = JSON.stringify(parts, (_key, value: unknown) =>
    typeof value === "function" ? String(value) : value,
  );
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return { kind: kindOf(reconciled), digest };
}

function kindOf({ group, version, kind }: ResourceType): string {
  return `${kind} ${formatApiVersion(group, version)}`;
}

export interface FollowFleetOptions {
  readonly definitions: AnnouncedWorker["definitions"];
  readonly log: Log;
  /** Called when the last worker with another version of this controller has stopped. */
  readonly onOnlyOurs: (controller: string) => void;
}

/**
 * Logs once if other workers run other versions of our controllers, and calls back when the last of them has stopped, because
 * its last reconciles used the other version.
 */
export function followFleet({
  definitions,
  log,
  onOnlyOurs,
}: FollowFleetOptions): (others: readonly AnnouncedWorker[]) => void {
  const known = new Map<string, string>();
  return (others) => {
    for (const [controller, own] of Object.entries(definitions)) {
      const foreign = others.filter(({ definitions: theirs }) => {
        const digest = theirs[controller]?.digest;
        return digest !== undefined && digest !== own.digest;
      });
      const versions = [
        ...new Set(foreign.map(({ definitions: theirs }) => theirs[controller]?.digest ?? "")),
      ];
      const before = known.get(controller) ?? "";
      const now = versions.toSorted().join();
      known.set(controller, now);
      if (now === "" && before !== "") onOnlyOurs(controller);
      if (now === "" || now === before) continue;
      log.warn(
        {
          controller,
          digest: own.digest,
          workers: foreign.map(({ workerId }) => workerId),
          kinds: [
            ...new Set([own.kind, ...foreign.map(({ definitions: t }) => t[controller]?.kind)]),
          ],
        },
        "controller versions differ between workers",
      );
    }
  };
}
