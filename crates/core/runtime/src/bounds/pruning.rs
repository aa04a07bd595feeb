//! Removes the parts of an answer that cannot be decoded or that the process does not use. A decoder follows
//! a limited number of levels. A single object with deeper nesting would spoil the whole list for every
//! reader, and any user can create such an object. So a value below [`DEEPEST`] levels becomes `null`.
//! `metadata.managedFields` is often the larger part of an object, and the writers of the object control the
//! length and depth of that field.

use http::{HeaderMap, header::CONTENT_TYPE};
use http_body_util::{BodyExt, combinators::MapFrame};
use hyper::body::{Body, Bytes, Frame};
use memchr::memchr2;

use crate::bounds::unzip::Unzip;

/// Levels that are kept. `serde_json` follows 127, and the decoded values are put into further objects that
/// are decoded elsewhere.
const DEEPEST: usize = 100;
/// Below so many levels, a key `metadata` does not belong to an object: the levels are the answer, `items` of
/// a list, and an item.
const OBJECTS: usize = 3;
/// Longer than any key that matters.
const KEY: usize = 16;

type Piece = Box<dyn FnMut(Frame<Bytes>) -> Frame<Bytes> + Send>;
/// An answer without the removed parts.
pub(crate) type Skimmed<B> = MapFrame<B, Piece>;

/// The field that is removed in addition to values that are nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    Nothing,
    ManagedFields,
}

/// For an answer in JSON: a single document or, for a watch, consecutive documents.
///
/// `unzip` decompresses the answer first.
pub(crate) fn skimmed<B: Body<Data = Bytes>>(
    body: B,
    head: &HeaderMap,
    without: Without,
    unzip: Option<Unzip>,
) -> Skimmed<B> {
    let is_json = |value: &http::HeaderValue| value.as_bytes().starts_with(b"application/json");
    if !head.get(CONTENT_TYPE).is_some_and(is_json) {
        return body.map_frame(unzipped(unzip));
    }
    let mut skim = Skim::new(without);
    let mut unzipped = unzipped(unzip);
    body.map_frame(Box::new(move |frame| {
        unzipped(frame).map_data(|bytes| skim.over(bytes))
    }))
}

fn unzipped(unzip: Option<Unzip>) -> Piece {
    match unzip {
        Some(mut unzip) => Box::new(move |frame| frame.map_data(|piece: Bytes| unzip.over(&piece))),
        None => Box::new(|frame| frame),
    }
}

/// The parser state within a document.
struct Skim {
    without: Without,
    /// Objects and lists that are open.
    depth: usize,
    /// The depth of the removed value; 0: no value is being removed.
    hidden: usize,
    /// The depth of the open `metadata`; 0: none is open.
    metadata: usize,
    /// The open string so far; `None` outside a string.
    text: Option<Text>,
    /// The last string.
    word: Word,
    /// The key of the value that comes next.
    key: Word,
}

#[derive(Default)]
struct Text {
    word: Word,
    escaped: bool,
}

/// The beginning of a string.
#[derive(Clone, Copy, Default)]
struct Word {
    bytes: [u8; KEY],
    length: usize,
}

impl Word {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.iter_mut().skip(self.length);
        room.zip(bytes).for_each(|(place, byte)| *place = *byte);
        self.length += bytes.len();
    }

    fn is(&self, key: &str) -> bool {
        self.bytes.get(..self.length) == Some(key.as_bytes())
    }
}

impl Skim {
    fn new(without: Without) -> Self {
        Self {
            without,
            depth: 0,
            hidden: 0,
            metadata: 0,
            text: None,
            word: Word::default(),
            key: Word::default(),
        }
    }

    /// Processes the next piece. A piece without removed parts is returned unchanged.
    fn over(&mut self, piece: Bytes) -> Bytes {
        let mut kept: Option<Vec<u8>> = None;
        let mut place = 0;
        while let Some(rest) = piece.get(place..).filter(|rest| !rest.is_empty()) {
            let was_hidden = self.hidden > 0;
            let (run, after) = rest.split_at(self.run(rest));
            let is_hidden = self.hidden > 0;
            if was_hidden || is_hidden {
                let kept = kept.get_or_insert_with(|| piece.slice(..place).to_vec());
                if !was_hidden {
                    kept.extend_from_slice(b"null");
                }
            } else if let Some(kept) = &mut kept {
                kept.extend_from_slice(run);
            }
            place = piece.len() - after.len();
        }
        kept.map_or(piece, Bytes::from)
    }

    /// Advances over some bytes and returns the number: within a string, all bytes up to a quote or a
    /// backslash at once.
    fn run(&mut self, rest: &[u8]) -> usize {
        if let Some(text) = self.text.as_mut().filter(|text| !text.escaped) {
            let run = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if run > 0 {
                text.word.push(&rest[..run]);
                return run;
            }
        }
        self.next(rest[0]);
        1
    }

    fn next(&mut self, byte: u8) {
        if let Some(text) = &mut self.text {
            match byte {
                b'"' if !text.escaped => {
                    self.word = text.word;
                    self.text = None;
                }
                byte => {
                    text.escaped = byte == b'\\' && !text.escaped;
                    text.word.push(&[byte]);
                }
            }
            return;
        }
        match byte {
            b'"' => self.text = Some(Text::default()),
            b':' => self.key = self.word,
            b',' => self.key = Word::default(),
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(),
            _ => {}
        }
    }

    fn open(&mut self, is_object: bool) {
        let key = std::mem::take(&mut self.key);
        let is_left_out = self.without == Without::ManagedFields
            && self.metadata > 0
            && self.metadata == self.depth
            && key.is("managedFields");
        self.depth += 1;
        if self.hidden > 0 {
            return;
        }
        if self.depth > DEEPEST || is_left_out {
            self.hidden = self.depth;
        } else if is_object && self.metadata == 0 && self.depth <= OBJECTS + 1 && key.is("metadata") {
            self.metadata = self.depth;
        }
    }

    fn close(&mut self) {
        for open in [&mut self.hidden, &mut self.metadata] {
            if *open == self.depth {
                *open = 0;
            }
        }
        self.depth = self.depth.saturating_sub(1);
        self.key = Word::default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http_body_util::Full;
    use serde_json::{Value, json};

    use super::*;

    /// In pieces of so many bytes.
    fn read(text: &str, size: usize, without: Without) -> String {
        let mut skim = Skim::new(without);
        let pieces = text.as_bytes().chunks(size);
        let read: Vec<u8> = pieces
            .flat_map(|piece| skim.over(Bytes::copy_from_slice(piece)).to_vec())
            .collect();
        String::from_utf8(read).unwrap()
    }

    fn nested(levels: usize, open: &str, close: &str) -> String {
        format!("{}7{}", open.repeat(levels), close.repeat(levels))
    }

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for text in [
            r#"{"a":"}]\"{[\\","b":[1,{"c":[]}],"":{}}"#,
            r#"{"type":"ADDED","object":{"a":1}}
{"type":"ADDED","object":{"b":"\\\""}}"#,
            &nested(DEEPEST, "[", "]"),
            &nested(DEEPEST, r#"{"a":"#, "}"),
            "[[[",
            "]}]}",
            "",
        ] {
            for size in 1..8 {
                assert_eq!(read(text, size, Without::ManagedFields), text);
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_not_there_and_all_around_it_is() {
        for (levels, open, close) in [
            (DEEPEST + 1, "[", "]"),
            (500, "[", "]"),
            (500, r#"{"}":"#, "}"),
            (20_000, r#"[{"\"[":"#, "}]"),
        ] {
            let deep = nested(levels, open, close);
            let text = format!(r#"{{"before":[1,"]"],"deep":{deep},"after":{{"x":[{deep}]}}}}"#);
            for size in [1, 3, 64, text.len()] {
                let read: Value = serde_json::from_str(&read(&text, size, Without::Nothing)).unwrap();
                assert_eq!(read["before"], json!([1, "]"]));
                assert!(read["deep"].is_array() || read["deep"].is_object());
                assert!(!read["after"]["x"][0].is_null());
                assert!(serde_json::from_str::<Value>(&read.to_string()).is_ok());
            }
        }
        let flat = format!("{}[],{{}},[[]],1{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        let expected = format!("{}null,null,null,1{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        assert_eq!(read(&flat, 5, Without::Nothing), expected);
    }

    #[test]
    fn who_wrote_what_is_left_out_where_it_is_an_object_s() {
        let object = json!({
            "metadata": {"name": "n", "managedFields": [{"fieldsV1": {"f:metadata": {"f:managedFields": {}}}}], "labels": {"a": "b"}},
            "spec": {"template": {"config": {"metadata": {"managedFields": [1]}}}, "text": "managedFields", "managedFields": [2]},
        });
        let mut expected = object.clone();
        expected["metadata"]["managedFields"] = Value::Null;
        let wraps = |object: &Value| {
            [
                object.clone(),
                json!({"items": [object, object], "metadata": {"resourceVersion": "7"}}),
                json!({"type": "MODIFIED", "object": object}),
            ]
        };
        for (told, expected) in wraps(&object).into_iter().zip(wraps(&expected)) {
            for size in [1, 2, 1000] {
                let text = format!("{told}\n{told}");
                assert_eq!(
                    read(&text, size, Without::ManagedFields),
                    format!("{expected}\n{expected}")
                );
                assert_eq!(read(&text, size, Without::Nothing), text);
            }
        }
    }

    #[tokio::test]
    async fn only_json_is_looked_at() {
        let deep = nested(DEEPEST + 1, "[", "]");
        for (type_, is_read) in [
            (Some("application/json"), true),
            (Some("application/json;stream=watch"), true),
            (Some("text/plain"), false),
            (None, false),
        ] {
            let mut head = HeaderMap::new();
            if let Some(type_) = type_ {
                head.insert(CONTENT_TYPE, http::HeaderValue::from_static(type_));
            }
            let body = skimmed(
                Full::new(Bytes::from(deep.clone())),
                &head,
                Without::Nothing,
                None,
            );
            let read = body.collect().await.unwrap().to_bytes();
            assert_eq!(read == deep.as_bytes(), !is_read, "{type_:?}");
        }
    }
}
