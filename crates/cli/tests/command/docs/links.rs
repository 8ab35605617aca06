use tollgate_testing::markdown::{Page, pages, root};

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let pages = pages();
    for page in &pages {
        for link in page.links() {
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = root().join(&page.name).parent().expect("a folder").to_owned();
            let target = match path {
                "" => root().join(&page.name),
                path => folder.join(path),
            };
            let target = target.canonicalize();
            let target = target.unwrap_or_else(|error| panic!("{}: {link}: {error}", page.name));
            if !anchor.is_empty() {
                let other = pages.iter().find(|other| root().join(&other.name) == target);
                let other = other.unwrap_or_else(|| panic!("{}: {link}: no page", page.name));
                assert!(anchors(other).any(|a| a == anchor), "{}: {link}: no heading", page.name);
            }
        }
    }
}

/// The anchors of its headings, as GitHub makes them.
fn anchors(page: &Page) -> impl Iterator<Item = String> + '_ {
    let headings = page.text.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
