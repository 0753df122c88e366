import { expect, test } from "vitest";
import { makePage } from "./make-page.ts";
import { readDeclarations } from "./read-declarations.ts";
import { PAGES } from "./pages.ts";

// After a change: npx vitest run --config test/vitest.config.ts --project unit test/reference -u
test.each(Object.entries(PAGES))("docs/reference/%s equals the docstrings", async (file, page) => {
  await expect(makePage(page)).toMatchFileSnapshot(`../../docs/reference/${file}`);
});

test.each(Object.entries(PAGES))(
  "everything in docs/reference/%s has a name and a docstring",
  (_, { of }) => {
    const undocumented = of.flatMap(({ from, name }) => {
      const { doc = "", members = [] } = readDeclarations(from).get(name) ?? {};
      const without = members.filter(
        ({ name: member, doc: text, signature }) =>
          text === "" || member === "" || signature.includes("/**"),
      );
      return [...(doc === "" ? [name] : []), ...without.map((member) => `${name}.${member.name}`)];
    });
    expect(undocumented).toEqual([]);
  },
);
