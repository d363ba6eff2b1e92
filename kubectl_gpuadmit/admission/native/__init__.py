"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies, evaluated for an object to be created.

    request (what is created) → bound (which policies are asked) → validating | mutating (merge)

``typed`` and ``pod_defaults`` bring a pod into the form in which the API server shows it to a
policy: only fields that Kubernetes knows, empty ones left out, defaults filled in. What a policy
reads and nobody here can know (who asks, a parameter that is not in the snapshot, the authorizer)
makes its answer unknown, unless another part of the expression decides.
"""
