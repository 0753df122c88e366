/** Name of the Lease of a controller's leader, or of the watcher for waiting runs. */
export function leaseName(installation: string, controller: string): string {
  return `${installation}-${controller}`;
}
