//! Lists in answers of EC2, without an XML library.

use std::ops::Range;

/// Where the items of a list are. Items within items are parts of these.
fn items(answer: &str) -> Vec<Range<usize>> {
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    while let Some(next) = answer[at..].find('<').map(|next| at + next) {
        let rest = &answer[next..];
        at = next + 1;
        if rest.starts_with("<item>") {
            if depth == 0 {
                start = next;
            }
            depth += 1;
        } else if rest.starts_with("</item>") {
            depth -= 1;
            if depth == 0 {
                found.push(start..next + "</item>".len());
            }
        }
    }
    found
}

/// The answer without the items that have this id.
pub fn without(answer: &str, id: &str) -> String {
    let mut text = answer.to_owned();
    let has_id = |range: &Range<usize>| answer[range.clone()].contains(&format!(">{id}<"));
    for range in items(answer).into_iter().filter(has_id).rev() {
        text.replace_range(range, "");
    }
    text
}

/// The answer without items.
pub fn empty(answer: &str) -> String {
    let mut text = answer.to_owned();
    for range in items(answer).into_iter().rev() {
        text.replace_range(range, "");
    }
    text
}

/// The answer with a replaced text, in the items with this id.
pub fn replaced(answer: &str, id: &str, former: &str, new: &str) -> String {
    let mut text = answer.to_owned();
    for range in items(answer).into_iter().rev() {
        let item = &answer[range.clone()];
        if item.contains(&format!(">{id}<")) {
            text.replace_range(range, &item.replace(former, new));
        }
    }
    text
}

/// A page of a single item. Further pages follow by a token that begins so.
pub const PAGE: &str = "page-";

/// The page with this number of an answer.
pub fn page(answer: &str, number: usize) -> String {
    let all = items(answer);
    let mut text = answer.to_owned();
    for (index, range) in all.iter().enumerate().rev() {
        if index != number {
            text.replace_range(range.clone(), "");
        }
    }
    if number + 1 < all.len() {
        let end = text.rfind("</").unwrap_or_default();
        text.insert_str(end, &format!("<nextToken>{PAGE}{}</nextToken>", number + 1));
    }
    text
}
