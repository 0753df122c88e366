import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineWorkflow, TerminalError } from "konverge";
import { z } from "zod";

const Release = z.object({ version: z.string().regex(/^[\w.-]+$/), folder: z.string() });
const Approval = z.object({ by: z.string() });

/**
 * Publishes a version after a user has approved it, and removes the draft without approval within a day. Each body may run twice
 * if a worker dies in it, so each is idempotent.
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
    if (approval === null) throw new TerminalError(`${version} was not approved within a day`);
    await w.step("publish", async () => {
      await rename(draft, file).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        // Already renamed by a worker that died before it was recorded.
        await access(file);
      });
    });
    return { file, by: approval.by };
  },
);
