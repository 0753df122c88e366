import { appendFile, access } from "node:fs/promises";
import { join } from "node:path";
import { defineConfig, defineWorkflow } from "konverge";

const folder = process.env["HELD_RELEASE_FOLDER"] ?? "";

/** Records which process starts which body. The last body does not end while the file `hold` exists. */
const release = defineWorkflow("release", { version: 1 }, async (w, version: string) => {
  const begin = (step: string) => appendFile(join(folder, "begun"), `${step} ${process.pid}\n`);
  await w.step("draft", async () => {
    await begin("draft");
    return { draft: version };
  });
  await w.signal("approve");
  await w.step("publish", async () => {
    await begin("publish");
    const isHeld = await access(join(folder, "hold")).then(
      () => true,
      () => false,
    );
    if (isHeld) await new Promise(() => setInterval(() => undefined, 1_000));
  });
  return `published ${version}`;
});

export default defineConfig({ workflows: [release] });
