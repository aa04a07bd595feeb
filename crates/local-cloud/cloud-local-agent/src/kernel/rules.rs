//! Closes links by a table of nf_tables per account; no further program touches the table:
//!
//! ```text
//! table inet closed-zones.<account> {
//!   chain from-machines { type filter hook prerouting priority -300; iif <link> drop; … }
//!   chain to-machines { type filter hook postrouting priority 300; oif <link> drop; … }
//! }
//! ```
//!
//! The first chain is before connection tracking, so an established flow is no exception. The second chain
//! also covers packets that kube-proxy forwards to a machine, and packets of the host. Without a closed link
//! there is no table.

use std::{collections::BTreeSet, io};

use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
    nftables::{
        ChainAttribute, ChainMessage, Cmp, DataAttribute, Expressions, Hook, Immediate, InetHookNumber, Meta,
        MetaKey, NfTablesMessage, Operator, Register, RuleAttribute, RuleMessage, TableAttribute,
        TableMessage, Verdict, VerdictAttribute,
    },
    none::ControlMessage,
};
use rtnetlink::{
    packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload},
    sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket, protocols::NETLINK_NETFILTER},
};

/// Prefix of the names of tables.
const TABLE: &str = "closed-zones";
/// Number of nf_tables among the parts of netfilter.
const NF_TABLES: u16 = 10;
/// `NF_DROP`.
const DROP: u32 = 0;

/// Chains: name, hook, priority, and the link by which a packet is judged. The priorities are `raw`, before
/// connection tracking, and the last priority in use.
const CHAINS: [(&str, InetHookNumber, i32, MetaKey); 2] = [
    ("from-machines", InetHookNumber::PreRouting, -300, MetaKey::Iif),
    ("to-machines", InetHookNumber::PostRouting, 300, MetaKey::Oif),
];

/// A netlink socket to netfilter.
pub(super) struct Filter {
    socket: TokioSocket,
    table: String,
    /// Number of the last message that was sent.
    sent: u32,
}

impl Filter {
    pub(super) fn open(account: &str) -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
        socket.socket_mut().bind_auto()?;
        socket.socket_ref().connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            table: format!("{TABLE}.{account}"),
            sent: 0,
        })
    }

    /// Writes the table in a single transaction: half a table never exists.
    pub(super) async fn shut(&mut self, links: &BTreeSet<u32>) -> io::Result<()> {
        let first = self.sent.wrapping_add(1);
        let batch = batch(&self.table, links, first);
        let mut bytes = Vec::new();
        for message in &batch {
            let start = bytes.len();
            bytes.resize(start + message.buffer_len(), 0);
            message.serialize(&mut bytes[start..]);
            self.sent = message.header.sequence_number;
        }
        self.socket.send(&bytes).await?;
        // Only the last message of the transaction requests an answer: the answer comes when all rules are in
        // force. An error of a refused message comes earlier, requested or not.
        loop {
            let (answer, _) = self.socket.recv_from_full().await?;
            if judge(&answer, first)? {
                return Ok(());
            }
        }
    }
}

/// Whether an answer confirms the transaction that begins with this number. Late answers to earlier
/// transactions are ignored.
fn judge(mut answer: &[u8], first: u32) -> io::Result<bool> {
    let mut confirmed = false;
    while !answer.is_empty() {
        let message = NetlinkMessage::<NetfilterMessage>::deserialize(answer).map_err(io::Error::other)?;
        let of_this = message.header.sequence_number.wrapping_sub(first) < u32::MAX / 2;
        if let (NetlinkPayload::Error(answer), true) = (&message.payload, of_this) {
            match answer.code {
                None => confirmed = true,
                Some(_) => return Err(answer.to_io()),
            }
        }
        // Messages begin at multiples of four.
        let length = (message.header.length as usize).max(16).next_multiple_of(4);
        answer = answer.get(length..).unwrap_or_default();
    }
    Ok(confirmed)
}

fn batch(table: &str, links: &BTreeSet<u32>, first: u32) -> Vec<NetlinkMessage<NetfilterMessage>> {
    let the_table = || TableMessage {
        attributes: vec![TableAttribute::Name(table.into())],
    };
    // Removes the former table. The deletion needs an existing table.
    let mut steps = vec![
        (NfTablesMessage::NewTable(the_table()), NLM_F_CREATE),
        (NfTablesMessage::DeleteTable(the_table()), 0),
    ];
    if !links.is_empty() {
        steps.push((NfTablesMessage::NewTable(the_table()), NLM_F_CREATE));
        for (name, hook, priority, key) in CHAINS {
            let chain = chain(table, name, hook, priority);
            steps.push((NfTablesMessage::NewChain(chain), NLM_F_CREATE));
            let rules = links.iter().map(|link| rule(table, name, key, *link));
            steps.extend(rules.map(|rule| (NfTablesMessage::NewRule(rule), NLM_F_CREATE | NLM_F_APPEND)));
        }
    }
    if let Some((_, flags)) = steps.last_mut() {
        *flags |= NLM_F_ACK;
    }
    let begin = (NetfilterMessageInner::from(ControlMessage::BatchBegin), 0);
    let end = (NetfilterMessageInner::from(ControlMessage::BatchEnd), 0);
    let steps = steps.into_iter().map(|(step, flags)| (step.into(), flags));
    std::iter::once(begin)
        .chain(steps)
        .chain(std::iter::once(end))
        .zip(0..)
        .map(|((inner, flags), place)| message(first.wrapping_add(place), inner, flags))
        .collect()
}

fn message(number: u32, inner: NetfilterMessageInner, flags: u16) -> NetlinkMessage<NetfilterMessage> {
    let header = match inner {
        NetfilterMessageInner::None(_) => NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NF_TABLES),
        _ => NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0),
    };
    let mut message = NetlinkMessage::from(NetfilterMessage::new(header, inner));
    message.header.flags = NLM_F_REQUEST | flags;
    message.header.sequence_number = number;
    message.finalize();
    message
}

fn chain(table: &str, name: &str, hook: InetHookNumber, priority: i32) -> ChainMessage {
    let place = vec![
        Hook::Number(hook.into()),
        // The kernel reads the value as signed.
        Hook::Priority(priority.cast_unsigned()),
    ];
    ChainMessage {
        attributes: vec![
            ChainAttribute::Table(table.into()),
            ChainAttribute::Name(name.into()),
            ChainAttribute::Hook(place),
            ChainAttribute::Type("filter".into()),
        ],
    }
}

/// Drops packets of this link.
fn rule(table: &str, chain: &str, key: MetaKey, link: u32) -> RuleMessage {
    let expressions = [
        Expressions::Meta(vec![Meta::DestinationRegister(Register::Reg1), Meta::Key(key)]),
        Expressions::Cmp(vec![
            Cmp::SourceRegister(Register::Reg1),
            Cmp::Op(Operator::Equal),
            // In the byte order of the kernel's register.
            Cmp::Data(DataAttribute::Value(link.to_ne_bytes().to_vec())),
        ]),
        Expressions::Immediate(vec![
            Immediate::DestinationRegister(Register::Verdict),
            Immediate::Data(DataAttribute::Verdict(vec![VerdictAttribute::Code(
                Verdict::Other(DROP),
            )])),
        ]),
    ];
    RuleMessage {
        attributes: vec![
            RuleAttribute::Table(table.into()),
            RuleAttribute::Chain(chain.into()),
            RuleAttribute::Expressions(expressions.into_iter().map(Into::into).collect()),
        ],
    }
}
