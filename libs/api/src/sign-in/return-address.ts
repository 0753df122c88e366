const LONGEST = 2_000;

/**
 * Returns the complete address of a page of the dashboard. Text that names another site, or a page outside of the dashboard,
 * gives the first page.
 * @param base of the dashboard, which ends with a slash
 */
export function returnAddress(text: string, base: string): string {
  if (text.length > LONGEST || !URL.canParse(text, base)) return base;
  const url = new URL(text, base);
  const { origin, pathname } = new URL(base);
  const isOwn =
    url.origin === origin &&
    url.pathname.startsWith(pathname) &&
    `${url.username}${url.password}` === "";
  return isOwn ? url.href : base;
}
