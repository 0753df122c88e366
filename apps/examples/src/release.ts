import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineWorkflow, TerminalError } from "konverge";
import { z } from "zod";

const Release = z.object({ version: z.string().regex(/^[\w.-]+$/), folder: z.string() });
const Approval = z.object({ by: z.string() });

/**
 * Publishes a version once a person has approved it, and takes the draft away when nobody does within a day. Each body may run
 * twice when a worker dies in it, so each is written such that the second time does no harm.
 */
export const release = defineWorkflow(
  "release",
  { version: 1, input: Release },
  async (w, { version, folder }) => {
    const draft = join(folder, `${version}.draft`);
    const file = join(folder, `${version}.txt`);
    await w.step(
      "draft",
      async () => {
        await mkdir(folder, { recursive: true });
        await writeFile(draft, `version ${version}\n`);
      },
      { undo: () => rm(draft, { force: true }) },
    );
    const approval = await w.signal("approve", { schema: Approval, timeout: "24h" });
    if (approval === null) throw new TerminalError(`nobody approved ${version} within a day`);
    await w.step("publish", async () => {
      await rename(draft, file).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        // Renamed already, by a worker that died before it could say so.
        await access(file);
      });
    });
    return { file, by: approval.by };
  },
);
