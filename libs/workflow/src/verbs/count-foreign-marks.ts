import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import { onlyMetadata, type KubeClient, type ObjectPage } from "@konverge/kube";
import { closeRedis, openProducer, withRedis, type RedisTarget } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import { marksIn } from "./step-marker.ts";

/** Objects of one kind that have marks of other installations. */
export interface ForeignMarks {
  /** Number of objects that were read. */
  readonly objects: number;
  /** False if the kind has more objects. */
  readonly isComplete: boolean;
  /** Number of these objects with a mark, by the ID of the installation that wrote it. */
  readonly markedBy: ReadonlyMap<string, number>;
}

export interface ForeignMarksOptions {
  readonly type: ResourceType;
  /** Default: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** The ID of this installation, whose marks are not counted; undefined if it has not written any. */
  readonly installation: string | undefined;
}

const PAGE = 500;
const MAX_PAGES = 4;

/**
 * Counts objects with marks that steps of this installation will not remove, because another Redis recorded the steps. Reads only
 * metadata, of at most 2,000 objects in 4 calls.
 */
export async function countForeignMarks(
  client: KubeClient,
  { type, namespaces, installation }: ForeignMarksOptions,
): Promise<ForeignMarks> {
  const inNamespaces = type.scope === "Cluster" ? undefined : namespaces;
  const places = inNamespaces?.map((namespace) => ({ namespace })) ?? [{}];
  const metadata = onlyMetadata(type);
  const markedBy = new Map<string, number>();
  let objects = 0;
  let pages = 0;
  for (const place of places) {
    let next: string | undefined;
    do {
      if (pages === MAX_PAGES) return { objects, isComplete: false, markedBy };
      pages += 1;
      const { items, continueToken }: ObjectPage<ApiObject> = await client.listPage(metadata, {
        ...place,
        limit: PAGE,
        ...defined({ continueToken: next }),
      });
      objects += items.length;
      for (const item of items) {
        const found = marksIn(item.metadata.annotations).flatMap(
          ({ mark }) => mark?.installation ?? [],
        );
        for (const id of new Set(found)) {
          if (id !== installation) markedBy.set(id, (markedBy.get(id) ?? 0) + 1);
        }
      }
      next = continueToken;
    } while (next !== undefined);
  }
  return { objects, isComplete: true, markedBy };
}

/**
 * Returns the ID in the marks of an installation, or undefined if none of its steps has written one. Changes nothing.
 * @throws KonvergeError `redis_unavailable`
 */
export async function readInstallation(place: {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly cluster: string;
}): Promise<string | undefined> {
  const redis = openProducer(place.redis);
  redis.on("error", () => undefined);
  try {
    const { installation } = runNames(place.prefix, place.cluster, "");
    return await withRedis(redis, async () => (await redis.get(installation)) ?? undefined);
  } finally {
    await closeRedis(redis);
  }
}
