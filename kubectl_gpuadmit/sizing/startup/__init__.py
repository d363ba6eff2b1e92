"""What a container starts, as far as its pod template and ConfigMaps say: environment as the
kubelet makes it, files that are mounted, and the commands in a shell's script. Runs nothing."""
