/// What happens while the store can't be reached, or doesn't answer in time.
///
/// Whatever is let in then is charged to the limit when the store is back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// Nothing is let in: the limit holds whatever happens.
    Closed,
    /// Everything is let in, and nothing bounds it: the provider's own refusals do.
    Open,
    /// Each process goes on by itself with its share, the limit by the number of processes that were
    /// alive when the store was last seen, from what it knew then to be used. What others have used
    /// since it last asked it doesn't know: all together let in at most the limit once more in the
    /// window in which the store went away, and the limit afterwards. A process that starts while the
    /// store is away knows of no other and of nothing that was used: it lets in the whole limit, and
    /// so does each further one.
    #[default]
    LocalShare,
}
