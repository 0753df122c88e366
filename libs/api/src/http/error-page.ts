import { ERRORS } from "@konverge/core";

/** The page that the `type` of every problem links to, relative to the API. */
export const ERROR_PAGE = "/docs/errors.md";

/** Returns every code with its title, as Markdown. docs/errors.md has the fixes. */
export function errorPage(): string {
  const sections = Object.entries(ERRORS).map(
    ([code, { title, httpStatus }]) => `## ${code}\n\n${title} (HTTP ${httpStatus}).\n`,
  );
  return `# Errors\n\n${sections.join("\n")}`;
}
