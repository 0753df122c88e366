import { describeSettings, type Settings } from "@konverge/contracts";
import { ensureError, isKonvergeError } from "@konverge/core";
import { ProblemError, type Client } from "@konverge/client";
import { readVersion } from "../process/version.ts";
import { checkRedisServer } from "../doctor/check-redis.ts";
import { keepSafe } from "./keep-safe.ts";

/** Collects the state of an installation without texts of users, objects or errors. A part that cannot be read has its error code. */
export async function collectBundle(client: Client, settings: Settings): Promise<unknown> {
  const isRemote = settings.server !== undefined;
  const list = await part(() => client.clusters.list());
  const overview = await part(() => client.overview());
  const names = "clusters" in overview ? (overview.clusters as readonly string[]) : [];
  const [overviews, guards, limits, checks] = await Promise.all([
    Promise.all(names.map((cluster) => part(() => client.overview({ cluster })))),
    part(() => client.guards.list()),
    part(() => client.limits.list()),
    isRemote ? [] : checkRedisServer(settings),
  ]);
  return keepSafe({
    createdAt: new Date().toISOString(),
    version: readVersion(),
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    settings: numbersOf(settings),
    checks: checks.map(({ check, level }) => ({ name: check, level })),
    list,
    overviews: names.length === 0 ? [overview] : overviews,
    guards,
    limits,
  });
}

/** The numeric settings, such as limits and durations. Texts may be addresses or secrets. */
function numbersOf(settings: Settings): Readonly<Record<string, number>> {
  const values = settings as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    describeSettings().flatMap(({ key, secret }) => {
      const value = values[key];
      return !secret && typeof value === "number" ? [[key, value]] : [];
    }),
  );
}

async function part<T extends object>(
  read: () => Promise<T>,
): Promise<T | { readonly code: string }> {
  try {
    return await read();
  } catch (thrown) {
    const error = ensureError(thrown);
    if (isKonvergeError(error) || error instanceof ProblemError) return { code: error.code };
    throw error;
  }
}
