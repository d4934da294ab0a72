// Package tenant attacks the manager on a real cluster, as a user who has edit in one
// namespace and nothing else: whatever the user tries is refused, or has no effect on the
// models of another namespace. It holds nothing but tests, which share one cluster and one
// manager with the permissions of manifests/rbac. docs/operate/security.md says in words
// what they show.
package tenant
