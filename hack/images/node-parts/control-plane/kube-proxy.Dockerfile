# kube-proxy needs iptables (nf_tables), its extensions and conntrack beside it; nothing else of Debian goes along.
ARG BASE
FROM ${BASE} AS parts
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends iptables conntrack >/dev/null
COPY closure.sh /closure.sh
RUN sh /closure.sh /out /usr/sbin/xtables-nft-multi /usr/sbin/conntrack /usr/lib/*/xtables/*.so \
 && for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do \
      ln -s xtables-nft-multi "/out/usr/sbin/$name"; done \
 && mkdir -p /out/run /out/tmp
FROM scratch
COPY --from=parts /out /
COPY bin/ /usr/local/bin/
ENV PATH=/usr/local/bin:/usr/sbin
