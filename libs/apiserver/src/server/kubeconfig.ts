/** Returns a kubeconfig in YAML for a server without authentication. */
export function formatKubeconfig(url: string): string {
  return `apiVersion: v1
kind: Config
clusters:
  - name: konverge-embedded
    cluster:
      server: ${url}
users:
  - name: anybody
    user: {}
contexts:
  - name: konverge-embedded
    context:
      cluster: konverge-embedded
      user: anybody
      namespace: default
current-context: konverge-embedded
`;
}
