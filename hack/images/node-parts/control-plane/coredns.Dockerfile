# The cluster DNS; kubeadm's manifest gives arguments only, so the command is the image's.
FROM scratch
COPY bin/ /
ENTRYPOINT ["/coredns"]
