//! Sentences of pages that are too long to be read once.

/// Words that a sentence may have.
const LONGEST: usize = 25;

/// How many sentences of a Markdown page, outside tables and blocks of code, have more than [`LONGEST`]
/// words.
pub fn long_sentences(markdown: &str) -> u64 {
    let long = paragraphs(markdown)
        .iter()
        .flat_map(|paragraph| sentences(paragraph))
        .filter(|sentence| sentence.split_whitespace().filter(|word| is_word(word)).count() > LONGEST)
        .count();
    long as u64
}

/// The prose of a page: each paragraph and each list item as a single line.
fn paragraphs(markdown: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut current = String::new();
    let mut in_code = false;
    for line in markdown.lines() {
        let text = line.trim();
        let is_fence = text.starts_with("```");
        let is_item = ["- ", "* ", "> "].iter().any(|mark| text.starts_with(mark)) || is_numbered(text);
        let is_prose = !in_code && !is_fence && !text.is_empty() && !text.starts_with(['|', '#', '<']);
        if (!is_prose || is_item) && !current.is_empty() {
            paragraphs.push(std::mem::take(&mut current));
        }
        if is_prose {
            current.push_str(text);
            current.push(' ');
        }
        in_code ^= is_fence;
    }
    paragraphs.push(current);
    paragraphs
}

fn is_numbered(text: &str) -> bool {
    text.split_once(". ")
        .is_some_and(|(number, _)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// A sentence ends with `.`, `!` or `?` before a space; a piece of code between backticks ends none.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut in_code = false;
    let mut last = ' ';
    for (index, c) in paragraph.char_indices() {
        if c == '`' {
            in_code = !in_code;
        }
        if !in_code && c == ' ' && matches!(last, '.' | '!' | '?') {
            sentences.push(&paragraph[begin..index]);
            begin = index;
        }
        last = c;
    }
    sentences.push(&paragraph[begin..]);
    sentences
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::long_sentences;

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn a_sentence_of_more_than_25_words_is_long_also_across_lines() {
        assert_eq!(long_sentences(&format!("{}.", words(25))), 0);
        assert_eq!(long_sentences(&format!("{}\n{}.", words(13), words(13))), 1);
        assert_eq!(long_sentences(&format!("{}. {}.", words(20), words(20))), 0);
    }

    #[test]
    fn tables_code_headings_and_separate_items_do_not_count() {
        let long = words(30);
        assert_eq!(
            long_sentences(&format!("| {long} |\n# {long}\n```\n{long}\n```\n")),
            0
        );
        assert_eq!(
            long_sentences(&format!("- {}\n- {}\n1. {}", words(20), words(20), words(20))),
            0
        );
    }
}
