"""What agents learn: layers, torsos, tables with their optimiser, successor features, Q values."""
